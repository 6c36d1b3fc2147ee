//! Receives push notifications (A2A §4.3.3, §13.2): who may send them, what they say, and each of them once and in order.
//!
//! A framework hands over headers and body of a `POST`; a [`Receiver`] answers what is to be done with it:
//!
//! ```
//! use longhaul_client::push::{Expectations, Receiver};
//! # use longhaul_protocol::Timestamp;
//! # let now = Timestamp::from_unix_millis(1_800_000_000_000);
//! # let mut headers = http::HeaderMap::new();
//! # headers.insert("content-type", "application/a2a+json".parse().unwrap());
//! # headers.insert("x-a2a-notification-token", "a long and secret token".parse().unwrap());
//! # let body = br#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#;
//! let receiver = Receiver::new(Expectations::token("a long and secret token")).unwrap();
//! let status = match receiver.receive(&headers, body, now) {
//!     Ok(Some(delivery)) => {
//!         println!("{}: {:?}", delivery.task_id, delivery.payload);
//!         // What follows from it is stored first: when it is told to be done it does not come again.
//!         delivery.done();
//!         http::StatusCode::NO_CONTENT
//!     }
//!     // It was received before.
//!     Ok(None) => http::StatusCode::NO_CONTENT,
//!     Err(refused) => refused.status(),
//! };
//! # assert_eq!(status, 204);
//! ```
//!
//! A sender delivers at least once, so an event comes again when its answer was lost. Longhaul's deliveries are named
//! `<task>_<sequence>_<config>` in `Webhook-Id`, by which events are handed over once and in order; those of other senders are told
//! apart by their id alone, and those without an id not at all.

mod expectations;
mod memory;
mod receiver;
mod refused;

pub use expectations::{Expectations, Unprotected};
pub use longhaul_push::sign::{InvalidSecret, SigningSecret};
pub use memory::Order;
pub use receiver::{Delivery, Receiver};
pub use refused::Refused;
