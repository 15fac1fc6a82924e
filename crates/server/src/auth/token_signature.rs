//! The signatures of bearer tokens, checked with the cryptography that TLS needs anyway.
//!
//! The token library takes its cryptography from whoever installs one. Its own choices would bring a second set of
//! it into the program; this is the first one, for checking alone: nothing here can sign.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature as ring;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    // For making key sets and thumbprints, which nobody does here.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes the token library use this. May be called more than once.
pub(super) fn install() {
    // An error says that it is installed already.
    let _ = PROVIDER.install_default();
}

fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::InvalidAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let scheme = Scheme::of(*algorithm).ok_or(ErrorKind::InvalidAlgorithm)?;
    Ok(Box::new(RingVerifier { algorithm: *algorithm, scheme, key: key.clone() }))
}

/// How a signature is checked.
#[derive(Clone, Copy)]
enum Scheme {
    Rsa(&'static ring::RsaParameters),
    Ecdsa(&'static dyn ring::VerificationAlgorithm),
}

impl Scheme {
    /// Never `none`, never a shared secret.
    fn of(algorithm: Algorithm) -> Option<Self> {
        Some(match algorithm {
            Algorithm::RS256 => Self::Rsa(&ring::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => Self::Rsa(&ring::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => Self::Rsa(&ring::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => Self::Rsa(&ring::RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => Self::Rsa(&ring::RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => Self::Rsa(&ring::RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => Self::Ecdsa(&ring::ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => Self::Ecdsa(&ring::ECDSA_P384_SHA384_FIXED),
            _ => return None,
        })
    }
}

struct RingVerifier {
    algorithm: Algorithm,
    scheme: Scheme,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for RingVerifier {
    /// A key of the other kind is an error like any other.
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verified = match (self.scheme, self.key.kind()) {
            (Scheme::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                ring::RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Scheme::Ecdsa(algorithm), DecodingKeyKind::SecretOrDer(point)) => {
                ring::UnparsedPublicKey::new(algorithm, point).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::jwk::JwkSet;
    use jsonwebtoken::{Validation, decode, decode_header};
    use serde_json::Value;

    use super::*;

    /// Keys and tokens made by another implementation (pyca/cryptography 48): every algorithm, and a key of 1024 bits.
    const VECTORS: &str = include_str!("token_signature_vectors.json");

    fn check(keys: &JwkSet, token: &str) -> Result<Value> {
        install();
        let header = decode_header(token)?;
        let mut validation = Validation::new(header.alg);
        validation.set_audience(&["audience"]);
        let key = DecodingKey::from_jwk(keys.find(&header.kid.unwrap()).unwrap())?;
        decode::<Value>(token, &key, &validation).map(|token| token.claims)
    }

    fn vectors() -> (JwkSet, Vec<(String, String)>) {
        let vectors: Value = serde_json::from_str(VECTORS).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let tokens = vectors["tokens"].as_array().unwrap().iter();
        let tokens = tokens.map(|token| (text(&token["name"]), text(&token["token"]))).collect();
        (serde_json::from_str(VECTORS).unwrap(), tokens)
    }

    #[test]
    fn tokens_of_every_algorithm_are_verified() {
        let (keys, tokens) = vectors();
        assert_eq!(tokens.len(), 9);
        for (name, token) in tokens {
            let claims = check(&keys, &token);
            assert_eq!(claims.is_ok(), name != "weak", "{name}: {claims:?}");
        }
    }

    #[test]
    fn a_changed_token_is_refused() {
        let (keys, tokens) = vectors();
        for (name, token) in tokens {
            let (message, signature) = token.rsplit_once('.').unwrap();
            let (header, claims) = message.split_once('.').unwrap();
            let claims = claims.replacen("ey", "eyAg", 1);
            let other_claims = format!("{header}.{claims}.{signature}");
            let at = signature.len() - 10;
            let flipped = if &signature[at..=at] == "A" { "B" } else { "A" };
            let other_signature =
                format!("{message}.{}{flipped}{}", &signature[..at], &signature[at + 1..]);
            let shorter = format!("{message}.{}", &signature[..at]);
            let longer = format!("{message}.{signature}AAAA");
            for changed in [other_claims, other_signature, shorter, longer, format!("{message}.")] {
                assert!(check(&keys, &changed).is_err(), "{name}: {changed}");
            }
        }
    }

    /// The header names the algorithm, the key does not: a key of another kind is no key.
    #[test]
    fn a_key_of_another_kind_is_refused() {
        let (keys, tokens) = vectors();
        for (name, token) in tokens {
            for jwk in &keys.keys {
                let header = decode_header(&token).unwrap();
                if jwk.common.key_id == header.kid {
                    continue;
                }
                let key = DecodingKey::from_jwk(jwk).unwrap();
                let verifier = verifier(&header.alg, &key).unwrap();
                let (message, _) = token.rsplit_once('.').unwrap();
                assert!(verifier.verify(message.as_bytes(), &vec![1; 64]).is_err(), "{name}");
            }
        }
    }

    #[test]
    fn shared_secrets_and_signing_are_not_served() {
        let secret = DecodingKey::from_secret(b"secret");
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512, Algorithm::EdDSA] {
            assert!(verifier(&algorithm, &secret).is_err(), "{algorithm:?}");
        }
        assert!(no_signer(&Algorithm::RS256, &EncodingKey::from_secret(b"secret")).is_err());
    }
}
