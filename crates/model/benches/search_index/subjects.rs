//! Generated subjects.

use model::event::Kind;
use model::search_index::{Document, KINDS};
use model::{OrganizationId, Xid};

/// SplitMix64: small and portable.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ z >> 31) % bound as u64).expect("below the bound")
    }

    fn choose<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }
}

const WHAT: &[&str] = &[
    "orders",
    "payments",
    "billing",
    "invoices",
    "catalog",
    "search",
    "cart",
    "checkout",
    "users",
    "sessions",
    "mail",
    "events",
    "metrics",
    "images",
    "reports",
    "gateway",
    "ledger",
    "pricing",
    "stock",
    "shipping",
    "reviews",
    "fraud",
    "tax",
    "vouchers",
    "newsletter",
    "recommendations",
    "analytics",
    "warehouse",
];
const PART: &[&str] = &[
    "api", "worker", "db", "cache", "web", "queue", "cron", "proxy", "bus", "admin", "importer",
    "exporter",
];
const STAGE: &[&str] = &["production", "staging", "test", "dev", "preview", "demo", "load"];
const PLACE: &[&str] = &["eu-west-1", "us-east-1", "ap-south-1", "local"];
const PROSE: &[&str] = &[
    "Serves the shop's customers and all that they need",
    "Keeps what was ordered until it was delivered",
    "Described by the team that owns it",
    "Made for the load tests of the summer, can be destroyed",
    "Reads events from the bus and writes them to the ledger",
];
const STATUS: &[&str] = &["ready", "running", "deployed", "applied", "failed"];

pub(crate) fn organization(n: usize) -> OrganizationId {
    OrganizationId(Xid::new(1_700_000_000, [9; 5], u32::try_from(n).expect("few")))
}

/// Typical names of all kinds, in a hundred organizations.
pub(crate) fn typical(count: u32) -> Vec<Document> {
    let mut random = Random(1);
    let mut name = |n: u32| {
        let (what, part) = (random.choose(WHAT), random.choose(PART));
        match random.below(4) {
            0 => format!("{what}-{part}"),
            1 => format!("{what}-{part}-{}", random.choose(STAGE)),
            2 => format!("{}-{what}-{part}-{}", random.choose(STAGE), random.below(100)),
            _ => format!("{what}-{part}-{:05x}", n.wrapping_mul(2_654_435_761) >> 12),
        }
    };
    let names: Vec<String> = (0..count).map(&mut name).collect();
    documents(names, &mut Random(2))
}

/// Names with a common prefix.
pub(crate) fn common_prefix(count: u32) -> Vec<Document> {
    documents((0..count).map(|n| format!("web-{n:05}")).collect(), &mut Random(3))
}

fn documents(names: Vec<String>, random: &mut Random) -> Vec<Document> {
    let document = |(n, name): (u32, String)| {
        let kind: Kind = KINDS[random.below(KINDS.len())];
        let maker = u8::try_from(random.below(5)).expect("below five");
        let tags = [("team", random.choose(WHAT)), ("region", random.choose(PLACE))];
        let tags: Vec<(Box<str>, Box<str>)> =
            tags.map(|(key, value)| (key.into(), value.into())).into_iter().collect();
        Document {
            kind,
            id: Xid::new(1_760_000_000 + n / 3, [maker; 5], n),
            organization: (random.below(20) > 0).then(|| organization(random.below(100))),
            name: name.into(),
            description: if random.below(3) == 0 { random.choose(PROSE) } else { "" }.into(),
            tags: tags.into(),
            status: Some(random.choose(STATUS).into()),
        }
    };
    (0..).zip(names).map(document).collect()
}

/// The name with two letters transposed.
pub(crate) fn with_typo(name: &str) -> String {
    let mut letters: Vec<char> = name.chars().collect();
    if let Some(at) = (1..letters.len()).find(|i| letters[*i].is_alphabetic() && *i > 1) {
        letters.swap(at - 1, at);
    }
    letters.into_iter().collect()
}
