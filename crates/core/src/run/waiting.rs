//! Reports what a run waits for, so that it never stands still silently.
//!
//! Code that waits for a lock returns only when it has the lock, and knows no terminal. The program registers
//! a listener once; a library without a listener waits silently.

use std::sync::OnceLock;

type Listener = Box<dyn Fn(&str) + Send + Sync>;

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// Registers the listener for everything this process waits for. Only the first call counts.
pub fn listen(listener: impl Fn(&str) + Send + Sync + 'static) {
    let _ = LISTENER.set(Box::new(listener));
}

/// Tells the listener, if there is one, what the process waits for.
pub fn tell(text: &str) {
    if let Some(listener) = LISTENER.get() {
        listener(text);
    }
}
