//! Operations on objects.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answer::{Answer, Failure, json_response, ok};
use super::objects::Key;
use super::route::Target;
use super::{RecordedRequest, Shared, State, apply, logs, watch};

/// Carries out a request.
pub(super) fn act(shared: &Arc<Shared>, asked: &RecordedRequest, target: &Target) -> Answer {
    let is_watch = matches!(asked.param("watch"), Some("true" | "1"));
    let verb = match (asked.method.as_str(), &target.name) {
        ("GET", None) if is_watch => "watch",
        ("GET", None) => "list",
        ("GET", Some(_)) => "get",
        ("POST", None) => "create",
        ("PUT", Some(_)) => "update",
        ("PATCH", Some(_)) => "patch",
        ("DELETE", Some(_)) => "delete",
        _ => return Err(Failure::new(405, "the server does not allow this method")),
    };
    check_allowed(&shared.state(), verb, target)?;
    match (verb, target.subresource.as_deref()) {
        ("watch", _) => Ok(watch::begin(shared, asked, target)),
        ("list", _) => list(&shared.state(), asked, target),
        ("get", Some("log")) => logs::read(shared, asked, target),
        ("get", _) => ok(found(&shared.state(), target)?),
        ("create", _) if target.kind.plural == "selfsubjectaccessreviews" => {
            Ok(json_response(201, &review(&shared.state(), &asked.body)))
        }
        ("create", _) => shared.change(|state| create(state, asked, target)),
        ("delete", _) => shared.change(|state| delete(state, asked, target)),
        (_, part) => shared.change(|state| write(state, asked, target, part)),
    }
}

pub(super) fn key(target: &Target) -> Key {
    Key {
        group: target.kind.group.clone(),
        plural: target.kind.plural.clone(),
        namespace: target.namespace.clone().unwrap_or_default(),
        name: target.name.clone().unwrap_or_default(),
    }
}

fn resource(target: &Target) -> String {
    match target.kind.group.as_str() {
        "" => target.kind.plural.clone(),
        group => format!("{}.{group}", target.kind.plural),
    }
}

fn check_allowed(state: &State, verb: &str, target: &Target) -> Result<(), Failure> {
    let (group, plural) = (&target.kind.group, &target.kind.plural);
    if !state.denied.contains(&(verb.to_owned(), group.clone(), plural.clone())) {
        return Ok(());
    }
    let at = match &target.namespace {
        Some(namespace) => format!("in the namespace \"{namespace}\""),
        None => "at the cluster scope".to_owned(),
    };
    Err(Failure::new(
        403,
        format!(
            "{} is forbidden: User \"tester\" cannot {verb} resource \"{plural}\" in API group \
             \"{group}\" {at}",
            resource(target)
        ),
    ))
}

fn review(state: &State, body: &Value) -> Value {
    let attributes = &body["spec"]["resourceAttributes"];
    let text = |field: &str| attributes[field].as_str().unwrap_or_default().to_owned();
    let operation = (text("verb"), text("group"), text("resource"));
    let mut review = body.clone();
    review["status"] = json!({ "allowed": !state.denied.contains(&operation) });
    review
}

fn found<'a>(state: &'a State, target: &Target) -> Result<&'a Value, Failure> {
    let name = target.name.as_deref().unwrap_or_default();
    let missing = || Failure::new(404, format!("{} \"{name}\" not found", resource(target)));
    state.objects.get(&key(target)).ok_or_else(missing)
}

/// Whether an object matches the selectors of a request.
pub(super) fn selected(object: &Value, asked: &RecordedRequest) -> bool {
    let labels = &object["metadata"]["labels"];
    let is_label = |term: &str| match term.split_once('=') {
        Some((name, value)) => labels[name.trim_end_matches('=')] == value.trim_start_matches('='),
        None => labels.get(term).is_some(),
    };
    let is_field = |term: &str| match term.split_once('=') {
        Some(("metadata.name", name)) => object["metadata"]["name"] == name,
        _ => true,
    };
    let terms = |name: &str| {
        let text = asked.param(name).unwrap_or_default().to_owned();
        text.split(',').filter(|term| !term.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    terms("labelSelector").iter().all(|term| is_label(term))
        && terms("fieldSelector").iter().all(|term| is_field(term))
}

fn list(state: &State, asked: &RecordedRequest, target: &Target) -> Answer {
    let (group, plural) = (&target.kind.group, &target.kind.plural);
    let all = state.objects.list(group, plural, target.namespace.as_deref());
    let all: Vec<&Value> = all.into_iter().filter(|object| selected(object, asked)).collect();
    let from: usize = asked.param("continue").and_then(|text| text.parse().ok()).unwrap_or(0);
    let limit: usize = asked.param("limit").and_then(|text| text.parse().ok()).unwrap_or(500);
    let page: Vec<&Value> = all.iter().skip(from).take(limit).copied().collect();
    let mut meta = json!({"resourceVersion": state.objects.version().to_string()});
    if from + page.len() < all.len() {
        meta["continue"] = json!((from + page.len()).to_string());
    }
    let kind = format!("{}List", target.kind.kind);
    ok(
        &json!({"kind": kind, "apiVersion": target.kind.api_version(), "metadata": meta, "items": page}),
    )
}

fn create(state: &mut State, asked: &RecordedRequest, target: &Target) -> Answer {
    let name = asked.body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let target = Target { name: Some(name.clone()), ..target.clone() };
    check_writable(state, &target)?;
    if state.objects.get(&key(&target)).is_some() {
        return Err(Failure::exists(format!("{} \"{name}\" already exists", resource(&target))));
    }
    Ok(json_response(201, &state.objects.put(&key(&target), asked.body.clone())))
}

/// Rejects writes to a missing namespace and creations in a terminating one.
fn check_writable(state: &State, target: &Target) -> Result<(), Failure> {
    let Some(namespace) = &target.namespace else { return Ok(()) };
    let of = Key {
        group: String::new(),
        plural: "namespaces".into(),
        namespace: String::new(),
        name: namespace.clone(),
    };
    let Some(found) = state.objects.get(&of) else {
        return Err(Failure::new(404, format!("namespaces \"{namespace}\" not found")));
    };
    let is_terminating = found["metadata"]["deletionTimestamp"].is_string();
    if is_terminating && state.objects.get(&key(target)).is_none() {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        return Err(Failure::new(403, format!("{} is forbidden: {why}", resource(target))));
    }
    Ok(())
}

/// PUT and PATCH of an object or its status.
fn write(
    state: &mut State,
    asked: &RecordedRequest,
    target: &Target,
    part: Option<&str>,
) -> Answer {
    check_writable(state, target)?;
    let of = key(target);
    let before = state.objects.get(&of).cloned();
    let is_apply = asked.content_type == "application/apply-patch+yaml";
    let code = if before.is_none() { 201 } else { 200 };
    let Some(mut object) = before.or_else(|| is_apply.then(|| json!({}))) else {
        return Err(found(state, target).err().unwrap_or_else(|| Failure::new(404, "not found")));
    };
    let claimed = &asked.body["metadata"]["resourceVersion"];
    if claimed.is_string() && *claimed != object["metadata"]["resourceVersion"] {
        return Err(Failure::new(
            409,
            "the object has been modified; please apply your changes to the latest version",
        ));
    }
    match (asked.method.as_str(), asked.content_type.as_str()) {
        ("PUT", _) if part == Some("finalize") => {
            if object["metadata"]["deletionTimestamp"].is_string() {
                remove(state, &of, true);
            }
            return ok(&object);
        }
        ("PUT", _) if part == Some("status") => object["status"] = asked.body["status"].clone(),
        ("PUT", _) => object = asked.body.clone(),
        (_, "application/merge-patch+json") => apply::merge(&mut object, &asked.body),
        (_, "application/apply-patch+yaml") => object = applied(state, asked, &of, &object)?,
        (_, other) => return Err(Failure::new(415, format!("{other} is not supported"))),
    }
    check_immutable(state, &of, &object)?;
    let object = state.objects.put(&of, object);
    let finalizers = object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
    if object["metadata"]["deletionTimestamp"].is_string()
        && finalizers
        && of.plural != "namespaces"
    {
        state.objects.remove(&of, true);
    }
    Ok(json_response(code, &object))
}

fn applied(
    state: &mut State,
    asked: &RecordedRequest,
    of: &Key,
    object: &Value,
) -> Result<Value, Failure> {
    let manager = asked.param("fieldManager").filter(|name| !name.is_empty());
    let manager =
        manager.ok_or_else(|| Failure::new(400, "fieldManager is required for apply patch"))?;
    for field in ["apiVersion", "kind"] {
        if !asked.body[field].is_string() {
            return Err(Failure::new(400, format!("invalid object type: {field} is not set")));
        }
    }
    if asked.body["metadata"]["managedFields"].is_array() {
        return Err(Failure::new(400, "metadata.managedFields must be nil"));
    }
    let mut owners = state.objects.owners(of);
    let mut fields = asked.body.clone();
    encode_secret(&mut fields);
    let force = asked.param("force") == Some("true");
    let mut result = apply::apply(object, &fields, &mut owners, manager, force)
        .map_err(|clash| Failure::new(409, clash))?;
    state.objects.set_owners(of, owners);
    for field in ["apiVersion", "kind"] {
        result[field] = asked.body[field].clone();
    }
    Ok(result)
}

/// Encodes the `stringData` of a Secret into its `data`.
fn encode_secret(object: &mut Value) {
    if object["kind"] == "Secret" {
        let Some(Value::Object(texts)) =
            object.as_object_mut().and_then(|o| o.remove("stringData"))
        else {
            return;
        };
        for (name, text) in texts {
            let bytes = text.as_str().unwrap_or_default().as_bytes();
            object["data"][&name] = json!(data_encoding::BASE64.encode(bytes));
        }
    }
}

/// Rejects changes of a Job's template and of a Deployment's selector.
fn check_immutable(state: &State, of: &Key, object: &Value) -> Result<(), Failure> {
    let Some(before) = state.objects.get(of) else { return Ok(()) };
    let field = match of.plural.as_str() {
        "jobs" => "/spec/template",
        "deployments" => "/spec/selector",
        _ => return Ok(()),
    };
    if before.pointer(field) == object.pointer(field) {
        return Ok(());
    }
    let message = format!("{} \"{}\" is invalid: {field}: field is immutable", of.plural, of.name);
    Err(Failure::new(422, message))
}

fn delete(state: &mut State, asked: &RecordedRequest, target: &Target) -> Answer {
    let mut object = found(state, target)?.clone();
    let of = key(target);
    let policy = asked.body["propagationPolicy"].as_str().or(asked.param("propagationPolicy"));
    let uid = &asked.body["preconditions"]["uid"];
    if uid.is_string() && *uid != object["metadata"]["uid"] {
        return Err(Failure::new(409, "the UID in the precondition does not match"));
    }
    let version = &asked.body["preconditions"]["resourceVersion"];
    if version.is_string() && *version != object["metadata"]["resourceVersion"] {
        return Err(Failure::new(409, "the ResourceVersion in the precondition does not match"));
    }
    let is_namespace = of.plural == "namespaces";
    if policy == Some("Foreground") && state.is_lingering && of.plural != "namespaces" {
        object["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    }
    let has_finalizers =
        object["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    if has_finalizers || (is_namespace && state.is_lingering) {
        object["metadata"]["deletionTimestamp"] = json!("2025-01-01T00:00:00Z");
        if is_namespace {
            object["status"]["phase"] = json!("Terminating");
        }
        return ok(&state.objects.put(&of, object));
    }
    // By default, deletion of a Job orphans its pods.
    let with_owned = policy.map_or(of.plural != "jobs", |policy| policy != "Orphan");
    remove(state, &of, with_owned);
    ok(&json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}))
}

/// Deletes an object; with a namespace, all objects in it.
pub(super) fn remove(state: &mut State, of: &Key, with_owned: bool) {
    if of.plural == "namespaces" {
        for key in state.objects.keys() {
            if key.namespace == of.name {
                state.objects.remove(&key, false);
            }
        }
    }
    state.objects.remove(of, with_owned);
}
