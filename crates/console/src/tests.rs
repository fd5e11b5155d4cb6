//! Checks that all referenced files are served and that none violates the content security policy.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;

fn text(path: &str) -> &'static str {
    let found = file(path).unwrap_or_else(|| panic!("no file is served at {path}"));
    str::from_utf8(found.body).expect("assets are text")
}

/// The text after each `before` up to the next `"`.
fn quoted<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).map(|rest| rest.split('"').next().expect("split gives a first part"))
}

fn collect_files(dir: &Path, prefix: &str, found: &mut BTreeSet<String>) {
    for entry in dir.read_dir().expect("assets can be read") {
        let entry = entry.expect("assets can be read");
        let name = format!("{prefix}/{}", entry.file_name().display());
        if entry.path().is_dir() {
            collect_files(&entry.path(), &name, found);
        } else {
            found.insert(name);
        }
    }
}

#[test]
fn path_determines_content_type() {
    for (path, content_type) in [
        ("/", Some("text/html; charset=utf-8")),
        ("/docs", Some("text/html; charset=utf-8")),
        ("/assets/style.css", Some("text/css; charset=utf-8")),
        ("/assets/app.js", Some("text/javascript; charset=utf-8")),
        ("/assets/views/events.js", Some("text/javascript; charset=utf-8")),
        ("/assets/icon.svg", Some("image/svg+xml")),
        ("", None),
        ("/assets/", None),
        ("/assets/../src/lib.rs", None),
        ("/assets/nothing.js", None),
    ] {
        assert_eq!(file(path).map(|found| found.content_type), content_type, "{path}");
    }
}

#[test]
fn every_asset_is_embedded_once() {
    let mut on_disk = BTreeSet::new();
    collect_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("assets"), "/assets", &mut on_disk);
    for (page, path) in [("/assets/index.html", "/"), ("/assets/docs.html", "/docs")] {
        assert!(on_disk.remove(page), "{page}");
        on_disk.insert(path.into());
    }
    let embedded: Vec<_> = paths().map(String::from).collect();
    assert_eq!(embedded.len(), on_disk.len());
    assert_eq!(embedded.into_iter().collect::<BTreeSet<_>>(), on_disk);
}

#[test]
fn pages_refer_only_to_files_that_are_served() {
    for page in ["/", "/docs"] {
        for target in ["href=\"", "src=\""].iter().flat_map(|before| quoted(text(page), before)) {
            assert!(file(target).is_some(), "{page} refers to {target}");
        }
    }
}

#[test]
fn modules_import_only_files_that_are_served() {
    for path in paths() {
        let dir = path.rsplit_once('/').expect("paths have a slash").0;
        for import in quoted(text(path), " from \"") {
            let target = match import.strip_prefix("../") {
                Some(rest) => format!("/assets/{rest}"),
                None => format!("{dir}/{}", import.trim_start_matches("./")),
            };
            assert!(file(&target).is_some(), "{path} imports {import}");
        }
    }
}

#[test]
fn assets_contain_no_inline_code_and_no_html_injection() {
    for path in paths() {
        for banned in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=\""]
        {
            assert!(!text(path).contains(banned), "{path} has {banned}");
        }
    }
    for page in ["/", "/docs"] {
        for banned in ["<style", "<script>", " onload=", " onclick=", "javascript:"] {
            assert!(!text(page).contains(banned), "{page} has {banned}");
        }
    }
}

#[test]
fn entity_tags_differ_between_contents() {
    let tags: BTreeSet<_> = FILES.iter().map(|(_, file)| file.etag).collect();
    assert_eq!(tags.len(), FILES.len());
    assert_eq!(&entity_tag(b""), b"\"cbf29ce484222325\"");
    assert_eq!(&entity_tag(b"a"), b"\"af63dc4c8601ec8c\"");
}
