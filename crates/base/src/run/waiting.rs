//! Tells whoever started a run what it waits for, so that no run stands still without a word.
//!
//! A run waits for locks in places that return nothing until they have them and that know of no
//! terminal. The program says once who listens; a library without a listener waits in silence.

use std::sync::OnceLock;

type Listener = Box<dyn Fn(&str) + Send + Sync>;

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// Gives all that this process waits for to `listener`. The first call counts.
pub fn listen(listener: impl Fn(&str) + Send + Sync + 'static) {
    let _ = LISTENER.set(Box::new(listener));
}

/// Tells the listener, if there is one, what the process waits for.
pub fn tell(text: &str) {
    if let Some(listener) = LISTENER.get() {
        listener(text);
    }
}
