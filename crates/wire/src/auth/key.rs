//! Account keys and the signatures made with them: base64 on the wire, HMAC-SHA256 inside.
//!
//! A key is parsed once, when the account is loaded, and keeps its prepared HMAC state; a request
//! clones that state instead of hashing the key again. The secret cannot be read back or printed.

use std::fmt;
use std::hint::black_box;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;
use crate::refusal::RefusalReason;

/// Bytes in an HMAC-SHA256 signature.
pub(crate) const SIGNATURE_BYTES: usize = 32;

/// Stands before what is hashed to seal: no text that is signed begins with a zero byte.
const SEAL: &[u8] = b"\0seal";
const STREAM: &[u8] = b"\0stream";
/// Bytes in front of what is sealed, made of the bytes themselves: the same twice only for the same.
const SEAL_BYTES: usize = 16;

/// A key of a storage account, ready to sign.
#[derive(Clone)]
pub struct AccountKey {
    keyed: Hmac<Sha256>,
}

/// The text is not the base64 of at least one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the account key is not valid base64")]
pub struct InvalidAccountKey;

impl AccountKey {
    /// Reads a key as connection strings carry it.
    pub fn from_base64(text: &str) -> Result<Self, InvalidAccountKey> {
        let bytes = STANDARD.decode(text).map_err(|_| InvalidAccountKey)?;
        if bytes.is_empty() { Err(InvalidAccountKey) } else { Ok(Self::from_bytes(&bytes)) }
    }

    pub fn from_bytes(secret: &[u8]) -> Self {
        let keyed = Hmac::new_from_slice(secret).expect("HMAC takes keys of any length");
        Self { keyed }
    }

    pub fn sign(&self, text: &str) -> Signature {
        let mut mac = self.keyed.clone();
        mac.update(text.as_bytes());
        Signature(mac.finalize().into_bytes().into())
    }

    /// Tells whether one of the keys made this signature, in a time that depends on the number of
    /// keys alone.
    pub fn any_signed(keys: &[AccountKey], text: &str, signature: &Signature) -> bool {
        let mut found = Choice::from(0);
        for key in keys {
            found |= key.sign(text).0.ct_eq(&signature.0);
        }
        found.into()
    }

    /// Bytes that say nothing to those without the key, and that nobody else can make.
    pub(crate) fn seal(&self, bytes: &[u8]) -> Vec<u8> {
        let mut sealed = self.hash(&[SEAL, bytes])[..SEAL_BYTES].to_vec();
        sealed.extend_from_slice(bytes);
        let (seal, content) = sealed.split_at_mut(SEAL_BYTES);
        self.cover(seal, content);
        sealed
    }

    /// Reads back what [`Self::seal`] wrote; `None` if this key did not.
    pub(crate) fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (seal, content) = sealed.split_at_checked(SEAL_BYTES)?;
        let mut bytes = content.to_vec();
        self.cover(seal, &mut bytes);
        let expected = self.hash(&[SEAL, &bytes]);
        bool::from(expected[..SEAL_BYTES].ct_eq(seal)).then_some(bytes)
    }

    /// Covers content with a stream that is another one for every seal, or uncovers it.
    fn cover(&self, seal: &[u8], content: &mut [u8]) {
        for (block, number) in content.chunks_mut(SIGNATURE_BYTES).zip(0_u64..) {
            let stream = self.hash(&[STREAM, seal, &number.to_be_bytes()]);
            block.iter_mut().zip(stream).for_each(|(byte, cover)| *byte ^= cover);
        }
    }

    fn hash(&self, parts: &[&[u8]]) -> [u8; SIGNATURE_BYTES] {
        let mut mac = self.keyed.clone();
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountKey(..)")
    }
}

/// A signature that was sent or made. There is no `PartialEq`: compare with
/// [`AccountKey::any_signed`] or [`Signature::is_same`].
#[derive(Clone, Copy)]
pub struct Signature([u8; SIGNATURE_BYTES]);

impl Signature {
    /// Reads the base64 form.
    ///
    /// # Errors
    /// 403 `AuthenticationFailed` when it is not the base64 of 32 bytes: such a text can be
    /// nobody's signature.
    pub fn parse(text: &str) -> Result<Self> {
        // The decoder asks for room by its estimate, one byte above the true length.
        let mut bytes = [0; SIGNATURE_BYTES + 1];
        match STANDARD.decode_slice(text, &mut bytes) {
            Ok(SIGNATURE_BYTES) => {
                let (signature, _) = bytes.split_at(SIGNATURE_BYTES);
                Ok(Self(signature.try_into().expect("split at the signature's length")))
            }
            _ => Err(StorageError::new(ErrorCode::AuthenticationFailed)
                .explained_by("the signature is not the base64 of 32 bytes")
                .refused_for(RefusalReason::MalformedCredentials)),
        }
    }

    /// Compares in a time that does not depend on where the two differ.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.0)
    }
}

impl fmt::Debug for Signature {
    /// A signature opens doors until it expires, so it is not printed either.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signature(..)")
    }
}

/// Compares texts that hold a secret, in a time that depends on their lengths alone.
pub fn is_same_secret(one: &[u8], other: &[u8]) -> bool {
    let (one_words, one_rest) = one.as_chunks();
    let (other_words, other_rest) = other.as_chunks();
    let words = one_words.iter().zip(other_words);
    let words = words.fold(0, |difference, (one, other)| {
        // Hidden from the optimiser, which might end the loop early.
        black_box(difference | (u64::from_ne_bytes(*one) ^ u64::from_ne_bytes(*other)))
    });
    let rest = one_rest.iter().zip(other_rest);
    let rest = rest.fold(0, |difference, (one, other)| difference | (one ^ other));
    one.len() == other.len() && bool::from((words | u64::from(rest)).ct_eq(&0))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The public key of the storage emulator.
    pub(crate) const DEV_KEY: &str =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

    pub(crate) fn dev_key() -> AccountKey {
        AccountKey::from_base64(DEV_KEY).unwrap()
    }

    #[test]
    fn any_of_the_keys_is_enough_and_none_is_not() {
        let (first, second) = (dev_key(), AccountKey::from_bytes(b"second"));
        let signature = second.sign("text");
        assert!(AccountKey::any_signed(&[first.clone(), second.clone()], "text", &signature));
        assert!(!AccountKey::any_signed(&[first.clone(), second], "Text", &signature));
        assert!(!AccountKey::any_signed(&[first], "text", &signature));
        assert!(!AccountKey::any_signed(&[], "text", &signature));
    }

    #[test]
    fn a_key_signs_many_texts_with_one_schedule() {
        let key = dev_key();
        assert_eq!(key.sign("a").to_base64(), key.sign("a").to_base64());
        assert_ne!(key.sign("a").to_base64(), key.sign("b").to_base64());
    }

    /// Does not compile when one of the two gets a `PartialEq`: the trait would have two
    /// implementations for it, and `_` no single answer.
    const _: fn() = || {
        trait NotComparable<Proof> {
            fn proven() {}
        }
        struct Comparable;
        impl<T> NotComparable<()> for T {}
        impl<T: PartialEq> NotComparable<Comparable> for T {}
        <AccountKey as NotComparable<_>>::proven();
        <Signature as NotComparable<_>>::proven();
    };

    #[test]
    fn signatures_compare_by_every_byte() {
        let signature = dev_key().sign("a");
        assert!(signature.is_same(&dev_key().sign("a")));
        for byte in 0..SIGNATURE_BYTES {
            let mut other = signature;
            other.0[byte] ^= 1;
            assert!(!signature.is_same(&other), "byte {byte}");
        }
    }

    #[test]
    fn secrets_of_any_length_compare_by_every_byte() {
        for length in 0..40 {
            let secret = vec![b'x'; length];
            assert!(is_same_secret(&secret, &secret.clone()));
            assert!(!is_same_secret(&secret, &vec![b'x'; length + 1]));
            assert!(!is_same_secret(&vec![b'x'; length + 8], &secret));
            for byte in 0..length {
                let mut other = secret.clone();
                other[byte] ^= 0x80;
                assert!(!is_same_secret(&secret, &other), "byte {byte} of {length}");
            }
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        assert_eq!(format!("{:?}", dev_key()), "AccountKey(..)");
        assert_eq!(format!("{:?}", dev_key().sign("a")), "Signature(..)");
    }

    #[test]
    fn a_malformed_key_is_refused() {
        for text in ["", "not base64!", "abc"] {
            assert_eq!(AccountKey::from_base64(text).err(), Some(InvalidAccountKey), "{text}");
        }
    }

    #[test]
    fn a_malformed_signature_fails_the_authentication() {
        let long = STANDARD.encode([0; 33]);
        let short = STANDARD.encode([0; 31]);
        let huge = STANDARD.encode([0; 4096]);
        for text in ["", "%", "AAAA", &long, &short, &huge] {
            let error = Signature::parse(text).unwrap_err();
            assert_eq!((error.code(), error.status()), (ErrorCode::AuthenticationFailed, 403));
        }
        let text = STANDARD.encode([7; 32]);
        assert_eq!(Signature::parse(&text).unwrap().to_base64(), text);
    }
}
