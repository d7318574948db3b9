//! A static index of Python wheels and source distributions.
//!
//! ```text
//! simple/index.html, index.json              the projects; their names are normalized (PEP 503)
//! simple/<project>/index.html, index.json    the files of a project
//! <wheel>.metadata                           the METADATA of the wheel next to it (PEP 658)
//! ```
//!
//! | a file has in HTML | in JSON (PEP 691) | source |
//! |---|---|---|
//! | `href="URL#sha256=DIGEST"` | `url`, `hashes` | PEP 503 |
//! | `data-requires-python` | `requires-python` | PEP 503 |
//! | `data-yanked="REASON"` | `yanked`: true, a reason or false | PEP 592 |
//! | of wheels: `data-core-metadata="sha256=DIGEST"`, and `data-dist-info-metadata`, as pip before 23.3 reads it | `core-metadata` alone: pip 22.3 to 23.1 stop at the other name | PEP 714 |
//! | `data-upload-time="TIME"`, which uv alone reads | `upload-time` | PEP 700 |
//! | – | `size`; `versions` of the project | PEP 700 |
//!
//! The version of the interface is in `<meta name="pypi:repository-version">` (PEP 629) and in `meta`.
//! 1.1 is the first one with sizes and times, which are in UTC: `2026-03-14T15:09:26Z`.
//! URLs are relative to the page, so that an index can be moved and copied.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use jiff::Timestamp;
use quick_xml::escape::escape;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::sdist;
use crate::wheel::{ListingFault, Metadata, Version, WheelArchive, WheelName, normalized};
use rockpack_core::content::{Content, hex};
use rockpack_core::error::{Error, Kind, Result};

/// A wheel or a source distribution in an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WheelPackage {
    pub file: String,
    pub project: String,
    /// The version, as in METADATA.
    pub version: String,
    /// The rest of the file name: an optional build number, and the tags; of a source distribution, its ending.
    pub tags: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_python: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
    /// The file `METADATA`. Source distributions have none: what a client builds of one may have other metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<MetadataFile>,
    /// The members whose rows in RECORD are stale, with the differences.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stale: BTreeMap<String, ListingFault>,
}

/// The file `METADATA` of a wheel, which an index offers next to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetadataFile {
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 in hex.
    pub sha256: String,
}

impl WheelPackage {
    /// Reads `file`, a wheel unless its name is one of a source distribution. Refused are those that installers
    /// refuse or misread.
    pub fn read(content: &Content, file: &str) -> Result<Self> {
        if let Some(parts) = sdist::parts(file) {
            let (metadata, tags) = (sdist::metadata(content, parts)?, parts.1.to_owned());
            return Ok(Self { tags, metadata: None, ..Self::of(file, &metadata) });
        }
        let name: WheelName = file.parse()?;
        let wheel = WheelArchive::open(content.clone())?;
        let stale = wheel.check(&name)?;
        Ok(Self { stale, ..Self::of(file, &wheel.metadata) })
    }

    /// The wheel `file` with this METADATA, which fits its name.
    pub fn of(file: &str, metadata: &Metadata) -> Self {
        let requires = metadata.all("Requires-Dist").map(|line| line.trim().to_owned());
        Self {
            tags: tags(file),
            file: file.to_owned(),
            project: normalized(metadata.name()),
            version: metadata.version().to_owned(),
            requires_python: metadata.get("Requires-Python").map(|it| it.trim().to_owned()),
            requires: requires.collect(),
            metadata: Some(MetadataFile {
                size: metadata.text().len() as u64,
                sha256: hex(&Sha256::digest(metadata.text())),
            }),
            stale: BTreeMap::new(),
        }
    }

    pub fn is_source(&self) -> bool {
        self.metadata.is_none()
    }
}

/// Compares two versions as pip and uv do (PEP 440). Invalid versions come first.
pub fn compare_versions(one: &str, other: &str) -> Ordering {
    let [one, other] = [one, other].map(|version| version.parse::<Version>().ok());
    one.cmp(&other)
}

pub fn metadata_of(wheel: &Content) -> Result<Vec<u8>> {
    Ok(WheelArchive::open(wheel.clone())?.metadata.text().into())
}

/// The part of a file name after name and version.
fn tags(file: &str) -> String {
    let stem = file.strip_suffix(".whl").unwrap_or(file);
    stem.splitn(3, '-').nth(2).unwrap_or_default().to_owned()
}

/// A time in seconds since 1970 as pages state it.
pub fn upload_time(seconds: i64) -> Result<String> {
    let time = Timestamp::from_second(seconds).map_err(|error| {
        Error::new(Kind::Limit, format!("{seconds} is not a valid time")).cause(error)
    })?;
    Ok(time.to_string())
}

/// Whether pages may state this time. It may have fractions of a second.
pub fn is_upload_time(text: &str) -> bool {
    let time = text.strip_suffix('Z').and_then(|_| text.parse::<Timestamp>().ok());
    // The parser takes other forms, too.
    time.is_some_and(|time| time.to_string().get(..19) == text.get(..19))
}

const API_VERSION: &str = "1.1";

#[derive(Debug, Clone, Copy)]
pub struct ListedWheel<'a> {
    pub package: &'a WheelPackage,
    /// Bytes of the file.
    pub size: u64,
    /// SHA-256 of the file, in hex.
    pub sha256: &'a str,
    /// When it was first published, as from [`upload_time`]; `None` if unknown.
    pub uploaded: Option<&'a str>,
    /// The reason why the wheel is yanked, possibly empty; `None` if it is not yanked.
    pub yanked: Option<&'a str>,
}

#[derive(Debug, Clone)]
pub struct Page<'a> {
    project: &'a str,
    wheels: Vec<ListedWheel<'a>>,
    /// The folder of the wheels, relative to the page.
    folder: String,
}

impl<'a> Page<'a> {
    /// The page of the project with these wheels, sorted by version and name. They lie in `folder`, whose
    /// path is relative to the page and ends in `/`.
    pub fn new(project: &'a str, folder: String, mut wheels: Vec<ListedWheel<'a>>) -> Self {
        wheels.sort_by_cached_key(|wheel| {
            let package = wheel.package;
            (package.version.parse::<Version>().ok(), &package.version, &package.file)
        });
        Self { project, wheels, folder }
    }

    pub fn html(&self) -> String {
        let lines: String = self.wheels.iter().map(|wheel| self.link(wheel)).collect();
        html(&format!("Links for {}", self.project), &lines)
    }

    fn link(&self, wheel: &ListedWheel<'_>) -> String {
        let metadata = wheel.package.metadata.as_ref().map(|it| format!("sha256={}", it.sha256));
        let attributes = [
            ("href", Some(format!("{}#sha256={}", self.url(wheel), wheel.sha256))),
            ("data-requires-python", wheel.package.requires_python.clone()),
            ("data-core-metadata", metadata.clone()),
            ("data-dist-info-metadata", metadata),
            ("data-upload-time", wheel.uploaded.map(str::to_owned)),
            ("data-yanked", wheel.yanked.map(str::to_owned)),
        ];
        let mut link = String::from("<a");
        for (name, value) in
            attributes.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)))
        {
            link.push_str(&format!(" {name}=\"{}\"", escape(value.as_str())));
        }
        format!("{link}>{}</a><br>\n", escape(wheel.package.file.as_str()))
    }

    fn url(&self, wheel: &ListedWheel<'_>) -> String {
        format!("{}{}", self.folder, percent_encoded(&wheel.package.file))
    }

    pub fn json(&self) -> String {
        let mut versions: Vec<&str> =
            self.wheels.iter().map(|wheel| wheel.package.version.as_str()).collect();
        versions.dedup();
        let files: Vec<Value> = self.wheels.iter().map(|wheel| self.file(wheel)).collect();
        let meta = json!({ "api-version": API_VERSION });
        json!({ "meta": meta, "name": self.project, "versions": versions, "files": files })
            .to_string()
    }

    fn file(&self, wheel: &ListedWheel<'_>) -> Value {
        let package = wheel.package;
        let mut file = json!({
            "filename": package.file,
            "url": self.url(wheel),
            "hashes": { "sha256": wheel.sha256 },
            "size": wheel.size,
            "upload-time": wheel.uploaded,
            "requires-python": package.requires_python,
            "core-metadata": package.metadata.as_ref().map(|it| json!({ "sha256": it.sha256 })),
            "yanked": wheel.yanked.map_or(json!(false), |reason| match reason {
                "" => json!(true),
                reason => json!(reason),
            }),
        });
        if let Some(fields) = file.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        file
    }
}

/// The list of projects, by their normalized names, for people and pip.
pub fn projects_html<'a>(projects: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<String> =
        projects.map(|it| format!("<a href=\"{0}/\">{0}</a><br>\n", escape(it))).collect();
    html("Simple index", &lines.concat())
}

/// The list of projects for programs that ask for JSON.
pub fn projects_json<'a>(projects: impl Iterator<Item = &'a str>) -> String {
    let projects: Vec<Value> = projects.map(|name| json!({ "name": name })).collect();
    json!({ "meta": { "api-version": API_VERSION }, "projects": projects }).to_string()
}

fn html(title: &str, lines: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"pypi:repository-version\" content=\"{API_VERSION}\">\n\
         <title>{title}</title>\n</head>\n<body>\n<h1>{title}</h1>\n{lines}</body>\n</html>\n"
    )
}

/// Encodes a name or a path as a part of a URL: some servers read the `+` of local versions as a blank.
pub fn percent_encoded(name: &str) -> String {
    let encoded = name.bytes().map(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    });
    encoded.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(version: &str, requires_python: Option<&str>) -> WheelPackage {
        WheelPackage {
            file: format!("demo-{version}-py3-none-any.whl"),
            project: "demo".to_owned(),
            version: version.to_owned(),
            tags: "py3-none-any".to_owned(),
            requires_python: requires_python.map(str::to_owned),
            requires: Vec::new(),
            metadata: Some(MetadataFile { size: 3, sha256: "m".to_owned() }),
            stale: BTreeMap::new(),
        }
    }

    #[test]
    fn pages_say_of_files_what_clients_ask() {
        let (new, old) = (package("1.10+rocm7.1", Some(">=3.9")), package("1.9", None));
        let wheels = vec![listed(&new, None), listed(&old, Some("\"bad\" & <old>"))];
        let page = Page::new("demo", "../../wheels/demo/".to_owned(), wheels);
        let html = page.html();
        let links: Vec<&str> = html.lines().filter(|line| line.starts_with("<a ")).collect();
        assert_eq!(
            links,
            [
                "<a href=\"../../wheels/demo/demo-1.9-py3-none-any.whl#sha256=w\" \
                 data-core-metadata=\"sha256=m\" data-dist-info-metadata=\"sha256=m\" \
                 data-upload-time=\"1970-01-01T00:00:05Z\" \
                 data-yanked=\"&quot;bad&quot; &amp; &lt;old&gt;\">demo-1.9-py3-none-any.whl</a><br>",
                "<a href=\"../../wheels/demo/demo-1.10%2Brocm7.1-py3-none-any.whl#sha256=w\" \
                 data-requires-python=\"&gt;=3.9\" data-core-metadata=\"sha256=m\" \
                 data-dist-info-metadata=\"sha256=m\" data-upload-time=\"1970-01-01T00:00:05Z\">\
                 demo-1.10+rocm7.1-py3-none-any.whl</a><br>",
            ]
        );
        let json: Value = serde_json::from_str(&page.json()).unwrap();
        assert_eq!(json["meta"]["api-version"], "1.1");
        assert_eq!(json["versions"], json!(["1.9", "1.10+rocm7.1"]));
        let [old, new] = [&json["files"][0], &json["files"][1]];
        assert_eq!(old["yanked"], "\"bad\" & <old>");
        assert_eq!((&new["yanked"], &new["size"]), (&false.into(), &5.into()));
        assert_eq!(new["core-metadata"]["sha256"], "m");
        assert_eq!(new["upload-time"], upload_time(5).unwrap());
        assert_eq!((&new["requires-python"], old.get("requires-python")), (&">=3.9".into(), None));
    }

    fn listed<'a>(package: &'a WheelPackage, yanked: Option<&'a str>) -> ListedWheel<'a> {
        let uploaded = Some("1970-01-01T00:00:05Z");
        ListedWheel { package, size: 5, sha256: "w", uploaded, yanked }
    }

    #[test]
    fn times_have_the_form_that_every_client_reads() {
        for good in ["2026-03-14T15:09:26Z", "2026-03-14T15:09:26.500000Z"] {
            assert!(is_upload_time(good), "{good}");
        }
        let bad = "|Z|2026-03-14|2026-03-14T15:09:26|2026-03-14T15:09:26+00:00|\
                   2026-03-14 15:09:26Z|20260314T150926Z|2026-02-30T15:09:26Z|yesterdaZ";
        for bad in bad.split('|') {
            assert!(!is_upload_time(bad), "{bad}");
        }
    }
}
