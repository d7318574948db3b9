//! A `.deb` assembled byte by byte, with members that no packer writes.

/// The block size of a tar archive in bytes.
const BLOCK: usize = 512;

/// The end of a tar archive.
pub const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// A member's header and content, which can be changed.
#[derive(Debug, Clone)]
pub struct RawMember {
    header: [u8; BLOCK],
    content: Vec<u8>,
    padding: u8,
}

impl RawMember {
    /// A member of GNU tar with this content, owned by root.
    pub fn new(name: &str, kind: u8, content: &[u8]) -> Self {
        let mut made = Self { header: [0; BLOCK], content: content.to_vec(), padding: 0 };
        made.put(0, name.as_bytes());
        made.put(100, if kind == b'5' { b"0000755\0" } else { b"0000644\0" });
        made.put(108, b"0000000\0");
        made.put(116, b"0000000\0");
        made.put(124, format!("{:011o}\0", content.len()).as_bytes());
        made.put(136, b"00000000000\0");
        made.put(156, &[kind]);
        made.put(257, b"ustar  \0root");
        made.put(297, b"root");
        made.put(329, b"0000001\0");
        made.put(337, b"0000003\0");
        made
    }

    /// A regular file.
    pub fn file(name: &str, content: &str) -> Self {
        Self::new(name, b'0', content.as_bytes())
    }

    /// A symbolic or hard link.
    pub fn link(name: &str, kind: u8, target: &str) -> Self {
        Self::new(name, kind, b"").with(157, target.as_bytes())
    }

    /// A pax header, of type `x` or `g`, with one record.
    pub fn pax(kind: u8, key: &str, value: &str) -> Self {
        let record = format!(" {key}={value}\n");
        let len = (record.len() + 1..).find(|len| len.to_string().len() + record.len() == *len);
        let record = format!("{}{record}", len.unwrap());
        Self::new("./PaxHeaders/x", kind, record.as_bytes()).with(257, b"ustar\x0000")
    }

    /// Overwrites bytes at an offset of the header.
    pub fn with(mut self, at: usize, bytes: &[u8]) -> Self {
        self.put(at, bytes);
        self
    }

    /// Sets the byte used as padding, which is normally zero.
    pub fn padded(self, padding: u8) -> Self {
        Self { padding, ..self }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.header[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// The member's bytes, with the header's checksum.
    pub fn bytes(&self) -> Vec<u8> {
        let mut header = self.header;
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let mut bytes = [&header[..], &self.content].concat();
        bytes.resize(bytes.len().next_multiple_of(BLOCK), self.padding);
        bytes
    }
}

/// The bytes of members, without the archive's end.
pub fn members(all: &[RawMember]) -> Vec<u8> {
    all.iter().flat_map(RawMember::bytes).collect()
}

/// The control file of a package.
pub fn control(name: &str) -> String {
    format!(
        "Package: {name}\nVersion: 1\nArchitecture: all\n\
         Maintainer: Packager <packager@example.org>\nDescription: one of {name}\n"
    )
}

/// A `.deb` with these uncompressed archives.
pub fn deb(control: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in
        [("debian-binary", &b"2.0\n"[..]), ("control.tar", control), ("data.tar", data)]
    {
        let size = content.len();
        bytes.extend(format!("{name:<16}0           0     0     100644  {size:<10}`\n").bytes());
        bytes.extend(content);
        bytes.extend(std::iter::repeat_n(b'\n', size % 2));
    }
    bytes
}
