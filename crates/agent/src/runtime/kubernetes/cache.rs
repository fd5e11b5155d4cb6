//! Cache of watched objects, with a signal per replica.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Mutex;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use kube::core::DynamicObject;
use kube::runtime::watcher::Event;
use tokio::sync::watch;

use super::names::REPLICA;
use super::pod::PodSummary;
use base::locks::lock;

/// Key of an object: its resource name (`deployments.apps`), namespace and name.
pub(super) type ObjectKey = (String, String, String);

/// Cache of watched objects.
#[derive(Default)]
pub(super) struct Cache {
    state: Mutex<CacheState>,
    /// Raised when an object of a replica changes, by the replica's label.
    signals: Mutex<HashMap<String, watch::Sender<u64>>>,
}

#[derive(Default)]
pub(super) struct CacheState {
    pub(super) pods: Collection<(String, String), PodSummary>,
    pub(super) nodes: Collection<String, Node>,
    /// By resource name.
    pub(super) objects: BTreeMap<String, Collection<(String, String), DynamicObject>>,
}

/// Objects of one kind. A list that is being received replaces them when it is complete.
pub(super) struct Collection<K, V> {
    pub(super) all: HashMap<K, V>,
    incoming: Option<HashMap<K, V>>,
    /// Whether a complete list was received.
    pub(super) is_synced: bool,
}

impl<K, V> Default for Collection<K, V> {
    fn default() -> Self {
        Self { all: HashMap::new(), incoming: None, is_synced: false }
    }
}

impl<K: std::hash::Hash + Eq + Clone, V: Clone> Collection<K, V> {
    /// Applies an event. Returns the affected objects, before and after.
    fn apply<T>(&mut self, event: Event<T>, read: impl Fn(T) -> (K, V)) -> Vec<V> {
        match event {
            Event::Init => self.incoming = Some(HashMap::new()),
            Event::InitApply(object) => {
                let (key, value) = read(object);
                self.incoming.get_or_insert_default().insert(key, value);
            }
            Event::InitDone => {
                let before =
                    std::mem::replace(&mut self.all, self.incoming.take().unwrap_or_default());
                self.is_synced = true;
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

impl Cache {
    /// Reads the cache.
    pub(super) fn read<T>(&self, read: impl FnOnce(&CacheState) -> T) -> T {
        read(&lock(&self.state))
    }

    /// Subscribes to changes of a replica.
    pub(super) fn signal(&self, label: &str) -> watch::Receiver<u64> {
        let mut signals = lock(&self.signals);
        signals.entry(label.to_owned()).or_insert_with(|| watch::channel(0).0).subscribe()
    }

    /// Removes the signal of a replica.
    pub(super) fn remove_signal(&self, label: &str) {
        lock(&self.signals).remove(label);
    }

    fn notify(&self, labels: &HashSet<String>) {
        let signals = lock(&self.signals);
        for signal in labels.iter().filter_map(|label| signals.get(label)) {
            signal.send_modify(|count| *count += 1);
        }
    }

    pub(super) fn apply_pod(&self, event: Event<Pod>) {
        let read = |pod: Pod| {
            let pod = PodSummary::new(&pod);
            ((pod.namespace.clone(), pod.name.clone()), pod)
        };
        let touched = lock(&self.state).pods.apply(event, read);
        self.notify(&touched.into_iter().filter_map(|pod| pod.replica).collect());
    }

    pub(super) fn apply_node(&self, event: Event<Node>) {
        let read = |mut node: Node| {
            node.metadata.managed_fields = None;
            (node.name_any(), node)
        };
        lock(&self.state).nodes.apply(event, read);
    }

    pub(super) fn apply_object(&self, kind: &str, event: Event<DynamicObject>) {
        let read = |mut object: DynamicObject| {
            object.metadata.managed_fields = None;
            ((object.namespace().unwrap_or_default(), object.name_any()), object)
        };
        let touched =
            lock(&self.state).objects.entry(kind.to_owned()).or_default().apply(event, read);
        self.notify(
            &touched.iter().filter_map(|object| object.labels().get(REPLICA).cloned()).collect(),
        );
    }
}

impl CacheState {
    /// A watched object.
    pub(super) fn object(&self, key: &ObjectKey) -> Option<&DynamicObject> {
        self.objects.get(&key.0)?.all.get(&(key.1.clone(), key.2.clone()))
    }

    /// A replica's pods, newest first.
    pub(super) fn pods_of(&self, label: &str) -> Vec<&PodSummary> {
        let of = |pod: &&PodSummary| pod.replica.as_deref() == Some(label);
        let mut pods: Vec<_> = self.pods.all.values().filter(of).collect();
        pods.sort_by(|a, b| b.created.cmp(&a.created).then_with(|| a.name.cmp(&b.name)));
        pods
    }
}
