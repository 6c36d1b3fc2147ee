//! The operations of A2A on tokio: turns, workers, streams
