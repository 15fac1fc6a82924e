//! Tables and a second kind go through the same catalogue.

use bytes::Bytes;
use tavola_engine::MemoryEngine;
use tavola_wire::auth::SignedIdentifier;
use tavola_wire::table::names::TableName;

use super::*;
use crate::storage::layout::sample::SampleRecord;
use crate::storage::layout::{Key, Kind};

const ACCOUNT: AccountId = AccountId(1_000_000);
const NOW: Ticks = Ticks::MIN_STORED;

/// A kind that the server does not know outside of tests.
#[derive(Debug, PartialEq)]
struct Sample {
    id: ResourceId,
    note: u8,
}

impl Resource for Sample {
    type Name<'a> = &'a str;
    type Record = SampleRecord;

    fn key_name<'a>(name: &'a &str) -> Cow<'a, str> {
        Cow::Borrowed(name)
    }

    fn from_record(SampleRecord { id, note }: SampleRecord) -> Result<Self> {
        Ok(Self { id, note })
    }
}

fn catalogue<R: Resource>(engine: &AnyEngine) -> Arc<Catalogue<R>> {
    Arc::new(Catalogue::new(engine.clone(), Arc::default()))
}

fn memory() -> AnyEngine {
    AnyEngine::Memory(MemoryEngine::new())
}

fn table_name(name: &str) -> TableName<'_> {
    TableName::parse(name).unwrap()
}

#[tokio::test]
async fn a_second_kind_is_created_found_changed_and_dropped() {
    let engine = memory();
    let (samples, tables) = (catalogue::<Sample>(&engine), catalogue::<Table>(&engine));
    let record = |note| move |id| SampleRecord { id, note };
    samples.create(ACCOUNT, &"alpha", record(1)).await.unwrap();
    let again = samples.create(ACCOUNT, &"alpha", record(2)).await;
    assert!(matches!(again, Err(Error::Exists)), "{again:?}");
    // A name is that of one kind only, ids are of all.
    tables.create_table(ACCOUNT, &table_name("alpha"), NOW).await.unwrap();
    let (sample, table) = (
        samples.find(ACCOUNT, &"alpha").await.unwrap(),
        tables.find(ACCOUNT, &table_name("Alpha")).await.unwrap(),
    );
    assert_eq!((sample.id, sample.note), (ResourceId(1), 1));
    assert_eq!(ResourceId(table.id.0), ResourceId(2));

    samples.update(ACCOUNT, &"alpha", |record| record.note += 5).await.unwrap();
    assert_eq!(samples.find(ACCOUNT, &"alpha").await.unwrap().note, 6);

    samples.drop_named(ACCOUNT, &"alpha", NOW).await.unwrap();
    samples.drop_signal.notified().await;
    for missing in [
        samples.find(ACCOUNT, &"alpha").await.map(|_| ()),
        samples.drop_named(ACCOUNT, &"alpha", NOW).await,
        samples.update(ACCOUNT, &"alpha", |_| {}).await,
    ] {
        assert!(matches!(missing, Err(Error::NotFound)), "{missing:?}");
    }
    let key = Key::Dropped { id: sample.id }.encode();
    let stored = engine.get(&key).await.unwrap().unwrap();
    let expected = Dropped { id: sample.id, kind: Kind::Sample, at: NOW };
    assert_eq!(Dropped::decode(sample.id, &stored), Some(expected));
    tables.find(ACCOUNT, &table_name("alpha")).await.unwrap();
}

#[tokio::test]
async fn a_name_that_is_used_again_stands_for_another_id() {
    let tables = catalogue::<Table>(&memory());
    let name = table_name("People");
    let mut ids = Vec::new();
    for _ in 0..3 {
        tables.create_table(ACCOUNT, &name, NOW).await.unwrap();
        ids.push(tables.find(ACCOUNT, &name).await.unwrap().id.0);
        tables.drop_named(ACCOUNT, &table_name("PEOPLE"), NOW).await.unwrap();
    }
    assert_eq!(ids, [1, 2, 3]);
}

#[tokio::test]
async fn policies_count_from_the_next_look_on() {
    let tables = catalogue::<Table>(&memory());
    let name = table_name("People");
    tables.create_table(ACCOUNT, &name, NOW).await.unwrap();
    assert!(tables.find(ACCOUNT, &name).await.unwrap().policies.is_empty());
    let policies = [SignedIdentifier { id: "readers".into(), access_policy: None }];
    tables.set_policies(ACCOUNT, &name, &policies).await.unwrap();
    assert_eq!(tables.find(ACCOUNT, &name).await.unwrap().policies[..], policies);
}

#[tokio::test]
async fn hits_are_answered_from_the_cache() {
    let engine = memory();
    let tables = catalogue::<Table>(&engine);
    let name = table_name("People");
    tables.create_table(ACCOUNT, &name, NOW).await.unwrap();
    let first = tables.find(ACCOUNT, &name).await.unwrap();
    let second = tables.find(ACCOUNT, &name).await.unwrap();
    assert!(Arc::ptr_eq(&first, &second));
}

#[tokio::test]
async fn a_row_that_nobody_wrote_is_corrupt() {
    let engine = memory();
    let tables = catalogue::<Table>(&engine);
    let name = table_name("People");
    tables.create_table(ACCOUNT, &name, NOW).await.unwrap();
    let key = Key::Table { account: ACCOUNT, name: "people" }.encode();
    engine.transact(Put(key, Bytes::from_static(b"x"))).await.unwrap();
    for corrupt in [
        tables.find(ACCOUNT, &name).await.map(|_| ()),
        tables.drop_named(ACCOUNT, &name, NOW).await,
        tables.set_policies(ACCOUNT, &name, &[]).await,
    ] {
        assert!(matches!(corrupt, Err(Error::Corrupt(_))), "{corrupt:?}");
    }
}

struct Put(Bytes, Bytes);

impl tavola_engine::Transition for Put {
    type Verdict = ();

    fn keys(&self) -> &[Bytes] {
        std::slice::from_ref(&self.0)
    }

    fn apply(
        &mut self,
        _: &[Option<Bytes>],
        writes: &mut tavola_engine::WriteSet,
    ) -> tavola_engine::Decision<()> {
        writes.put(self.0.clone(), self.1.clone());
        tavola_engine::Decision::Commit(())
    }
}
