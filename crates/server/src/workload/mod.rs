//! What is asked of the tables: the shapes of queries, the partitions that are hot, and the advice that follows.
//!
//! All of it is in memory, bounded, of this process alone, and gone with it. It decides nothing: ranges of indexes that were
//! too wide are not tried again for a while, and that is all it steers.

pub(crate) mod advice;
pub(crate) mod hot_partitions;
mod shape;
mod shapes;
mod space_saving;
mod wide_ranges;

pub(crate) use hot_partitions::HotPartitions;
pub(crate) use shapes::{PageFigures, QueryShapes, ShapeRecord};
pub(crate) use wide_ranges::WideRanges;

#[derive(Debug, Default)]
pub(crate) struct Workload {
    pub shapes: QueryShapes,
    pub hot_partitions: HotPartitions,
    pub wide_ranges: WideRanges,
}
