//! Version 0.3 beside v1.0: vectors of the reference SDK, what is read and what is refused, and what survives both ways.

mod any;
mod errors;
mod reading;
mod round_trip;
mod vectors;
