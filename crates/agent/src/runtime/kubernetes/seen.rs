//! What the watches have seen, and who waits for which change.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Mutex;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use kube::core::DynamicObject;
use kube::runtime::watcher::Event;
use tokio::sync::watch;

use super::names::REPLICA;
use super::pod;
use base::locks::lock;

/// Where an object is: its kind in paths (`deployments.apps`), its namespace, its name.
pub(super) type At = (String, String, String);

/// All that is known.
#[derive(Default)]
pub(super) struct World {
    known: Mutex<Known>,
    /// Raised when something of a replica has changed, by its label.
    signals: Mutex<HashMap<String, watch::Sender<u64>>>,
}

#[derive(Default)]
pub(super) struct Known {
    pub(super) pods: Shelf<(String, String), pod::Seen>,
    pub(super) nodes: Shelf<String, Node>,
    /// By kind.
    pub(super) objects: BTreeMap<String, Shelf<(String, String), DynamicObject>>,
}

/// The objects of one kind; a list that is being told replaces all at its end.
pub(super) struct Shelf<K, V> {
    pub(super) all: HashMap<K, V>,
    coming: Option<HashMap<K, V>>,
    /// Was a whole list ever told?
    pub(super) is_whole: bool,
}

impl<K, V> Default for Shelf<K, V> {
    fn default() -> Self {
        Self { all: HashMap::new(), coming: None, is_whole: false }
    }
}

impl<K: std::hash::Hash + Eq + Clone, V: Clone> Shelf<K, V> {
    /// Takes a change; what it touched, before and after.
    fn take<T>(&mut self, event: Event<T>, read: impl Fn(T) -> (K, V)) -> Vec<V> {
        match event {
            Event::Init => self.coming = Some(HashMap::new()),
            Event::InitApply(object) => {
                let (key, value) = read(object);
                self.coming.get_or_insert_default().insert(key, value);
            }
            Event::InitDone => {
                let before =
                    std::mem::replace(&mut self.all, self.coming.take().unwrap_or_default());
                self.is_whole = true;
                return before.into_values().chain(self.all.values().cloned()).collect();
            }
            Event::Apply(object) => {
                let (key, value) = read(object);
                let before = self.all.insert(key, value.clone());
                return before.into_iter().chain([value]).collect();
            }
            Event::Delete(object) => {
                let (key, value) = read(object);
                self.all.remove(&key);
                return vec![value];
            }
        }
        Vec::new()
    }
}

impl World {
    /// Looks at what is known.
    pub(super) fn with<T>(&self, look: impl FnOnce(&Known) -> T) -> T {
        look(&lock(&self.known))
    }

    /// Hears of changes of a replica.
    pub(super) fn signal(&self, label: &str) -> watch::Receiver<u64> {
        let mut signals = lock(&self.signals);
        signals.entry(label.to_owned()).or_insert_with(|| watch::channel(0).0).subscribe()
    }

    /// Nobody waits for it any more.
    pub(super) fn forget(&self, label: &str) {
        lock(&self.signals).remove(label);
    }

    fn tell(&self, labels: &HashSet<String>) {
        let signals = lock(&self.signals);
        for signal in labels.iter().filter_map(|label| signals.get(label)) {
            signal.send_modify(|count| *count += 1);
        }
    }

    pub(super) fn pod(&self, event: Event<Pod>) {
        let read = |pod: Pod| {
            let seen = pod::Seen::of(&pod);
            ((seen.namespace.clone(), seen.name.clone()), seen)
        };
        let touched = lock(&self.known).pods.take(event, read);
        self.tell(&touched.into_iter().filter_map(|pod| pod.replica).collect());
    }

    pub(super) fn node(&self, event: Event<Node>) {
        let read = |mut node: Node| {
            node.metadata.managed_fields = None;
            (node.name_any(), node)
        };
        lock(&self.known).nodes.take(event, read);
    }

    pub(super) fn object(&self, kind: &str, event: Event<DynamicObject>) {
        let read = |mut object: DynamicObject| {
            object.metadata.managed_fields = None;
            ((object.namespace().unwrap_or_default(), object.name_any()), object)
        };
        let touched =
            lock(&self.known).objects.entry(kind.to_owned()).or_default().take(event, read);
        self.tell(
            &touched.iter().filter_map(|object| object.labels().get(REPLICA).cloned()).collect(),
        );
    }
}

impl Known {
    /// An object that is watched.
    pub(super) fn object(&self, at: &At) -> Option<&DynamicObject> {
        self.objects.get(&at.0)?.all.get(&(at.1.clone(), at.2.clone()))
    }

    /// A replica's pods, newest first.
    pub(super) fn pods_of(&self, label: &str) -> Vec<&pod::Seen> {
        let of = |pod: &&pod::Seen| pod.replica.as_deref() == Some(label);
        let mut pods: Vec<_> = self.pods.all.values().filter(of).collect();
        pods.sort_by(|a, b| b.created.cmp(&a.created).then_with(|| a.name.cmp(&b.name)));
        pods
    }
}
