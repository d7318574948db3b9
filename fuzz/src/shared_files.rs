//! The union of two shared files: their order does not matter, and the union has the content of both.

use rockpack_split::input::database::union;
use rockpack_core::content::Content;

fn merged(files: &[Content]) -> Option<Vec<u8>> {
    match union(files) {
        Ok(Ok(content)) => content.read_vec(0..content.len(), 1 << 30, "union").ok(),
        Ok(Err(_)) => None,
        Err(error) => {
            super::refuse_bug(&error);
            None
        }
    }
}

pub fn run(data: &[u8]) {
    let Some((cut, rest)) = data.split_first() else { return };
    let (one, two) = rest.split_at(rest.len() * usize::from(*cut) / 256);
    let files = [one, two].map(Content::of_bytes);
    let Some(both) = merged(&files) else { return };
    let [one, two] = files;
    assert_eq!(merged(&[two, one.clone()]).as_ref(), Some(&both));
    assert_eq!(merged(&[Content::of_bytes(both.clone()), one]).as_ref(), Some(&both));
}
