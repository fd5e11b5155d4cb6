//! Access control: the table of roles and actions.
//!
//! Every request of a user is one [`Action`]; [`Action::roles`] is the only place that says which
//! role may perform it. Which *objects* a user sees is a separate question: the store's `Scope`.

use crate::text_enum::text_enum;
use crate::user::{Access, Role, User};

/// What a user is, for access control: its role in the organization, or its role on the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Principal {
    /// Reads everything of its organization and changes nothing.
    Viewer,
    /// Creates and changes the organization's objects.
    Member,
    /// Also manages users, invites and credentials of agents.
    Owner,
    /// Reads everything of all organizations and changes nothing.
    Auditor,
    /// The platform administrator.
    Admin,
}

text_enum!(Principal {
    Viewer => "viewer",
    Member => "member",
    Owner => "owner",
    Auditor => "auditor",
    Admin => "admin",
});

impl Principal {
    /// The principal of a user.
    pub fn of(user: &User) -> Self {
        match (user.access, user.role) {
            (Access::Platform, _) => Self::Admin,
            (Access::Auditor, _) => Self::Auditor,
            (Access::Tenant, Role::Owner) => Self::Owner,
            (Access::Tenant, Role::Member) => Self::Member,
            (Access::Tenant, Role::Viewer) => Self::Viewer,
        }
    }
}

/// The kind of subject that an action concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubjectKind {
    /// The caller's own user: profile, password, membership.
    Account,
    /// The caller's own login sessions and tokens.
    Token,
    /// An organization.
    Organization,
    /// Users of an organization.
    User,
    /// Invites.
    Invite,
    /// Service accounts.
    ServiceAccount,
    /// Clusters.
    Cluster,
    /// Deployments.
    Deployment,
    /// Instances of managed services.
    Instance,
    /// Images in the server's image store.
    Image,
    /// Templates.
    Template,
    /// Environments.
    Environment,
    /// Resources of environments.
    Resource,
    /// Credentials of an organization for external systems.
    Credential,
    /// Quotas of the caller.
    Quota,
    /// The event log.
    Event,
    /// Search and relations over all kinds of subjects.
    Search,
    /// Kinds, regions, executors: what the server offers.
    Catalog,
    /// Objects and settings of all organizations.
    Platform,
}

text_enum!(SubjectKind {
    Account => "account",
    Token => "token",
    Organization => "organization",
    User => "user",
    Invite => "invite",
    ServiceAccount => "service_account",
    Cluster => "cluster",
    Deployment => "deployment",
    Instance => "instance",
    Image => "image",
    Template => "template",
    Environment => "environment",
    Resource => "resource",
    Credential => "credential",
    Quota => "quota",
    Event => "event",
    Search => "search",
    Catalog => "catalog",
    Platform => "platform",
});

/// What is done to a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads; changes nothing and returns no secret.
    Read,
    /// Creates.
    Create,
    /// Updates, or executes a command.
    Update,
    /// Deletes.
    Delete,
    /// Creates and returns credentials that act for the subject.
    Issue,
    /// Reads secrets of the subject.
    Reveal,
    /// Manages subjects of other users, or subjects that reach beyond Paddock.
    Administer,
}

text_enum!(Verb {
    Read => "read",
    Create => "create",
    Update => "update",
    Delete => "delete",
    Issue => "issue",
    Reveal => "reveal",
    Administer => "administer",
});

/// An action of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Action {
    kind: SubjectKind,
    verb: Verb,
}

use Principal::{Admin, Auditor, Member, Owner, Viewer};

/// Every user.
const USERS: &[Principal] = &[Viewer, Member, Owner, Auditor, Admin];
/// Those who change an organization's objects.
const MEMBERS: &[Principal] = &[Member, Owner, Admin];
/// Those who administer an organization.
const OWNERS: &[Principal] = &[Owner, Admin];
/// Those who read what members of an organization do not see.
const INSPECTORS: &[Principal] = &[Owner, Auditor, Admin];
/// Those who read the platform's own objects.
const AUDITORS: &[Principal] = &[Auditor, Admin];
/// The platform administrator.
const ADMINS: &[Principal] = &[Admin];
/// No action: nobody may.
const NOBODY: &[Principal] = &[];

impl Action {
    /// An action.
    pub const fn new(kind: SubjectKind, verb: Verb) -> Self {
        Self { kind, verb }
    }

    /// The kind of subject.
    pub const fn kind(self) -> SubjectKind {
        self.kind
    }

    /// What is done to it.
    pub const fn verb(self) -> Verb {
        self.verb
    }

    /// Whether the action changes nothing and returns no secret.
    pub const fn is_read(self) -> bool {
        matches!(self.verb, Verb::Read)
    }

    /// The roles that may perform the action: the table.
    #[expect(clippy::match_same_arms, reason = "a table reads better with one line per rule")]
    pub const fn roles(self) -> &'static [Principal] {
        use SubjectKind as K;
        use Verb::{Administer, Create, Delete, Issue, Read, Reveal, Update};
        match (self.kind, self.verb) {
            // Every user manages its own password, sessions and membership.
            (K::Account, Read | Update | Delete) => USERS,
            (K::Token, Read | Create | Update | Delete) => USERS,
            // The platform's own objects are not those of any organization.
            (K::Platform, Read) => AUDITORS,
            (K::Platform, _) => ADMINS,
            // Their names tell which external systems the organization uses.
            (K::Credential, Read) => INSPECTORS,
            (K::Credential, Update | Delete) => OWNERS,
            // Everything else of an organization is readable by all of its users.
            (_, Read) => USERS,
            (K::Organization | K::User, Update | Delete) => OWNERS,
            // Owners reset their members' passwords.
            (K::User, Issue) => OWNERS,
            // A setting limits the creation of invites to owners.
            (K::Invite, Create) => MEMBERS,
            (K::Invite, Update | Delete | Administer) => OWNERS,
            (
                K::Cluster
                | K::Deployment
                | K::Instance
                | K::ServiceAccount
                | K::Image
                | K::Template
                | K::Environment,
                Create | Update | Delete,
            ) => MEMBERS,
            // Values of environment variables.
            (K::Deployment, Reveal) => MEMBERS,
            // Agents' credentials, registered clusters, and other users' instances and accounts.
            (K::Cluster, Issue | Administer) => OWNERS,
            (K::Instance | K::ServiceAccount, Administer) => OWNERS,
            // A setting decides who adopts objects of external systems.
            (K::Resource, Update) => MEMBERS,
            (K::Resource, Administer) => OWNERS,
            _ => NOBODY,
        }
    }

    /// Whether the principal may perform the action.
    pub fn allows(self, principal: Principal) -> bool {
        self.roles().contains(&principal)
    }

    /// The role to ask for: the least one of an organization that may, or the platform's.
    pub fn needs(self) -> Option<Principal> {
        self.roles().iter().copied().min()
    }
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.kind, self.verb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actions() -> impl Iterator<Item = Action> {
        let kinds = SubjectKind::ALL.iter();
        kinds.flat_map(|kind| Verb::ALL.iter().map(|verb| Action::new(*kind, *verb)))
    }

    /// Kinds in which a user manages only what is its own.
    fn is_own(action: Action) -> bool {
        matches!(action.kind(), SubjectKind::Account | SubjectKind::Token)
    }

    #[test]
    fn viewers_and_auditors_change_only_what_is_their_own() {
        for action in actions().filter(|action| !action.is_read() && !is_own(*action)) {
            for principal in [Viewer, Auditor] {
                assert!(!action.allows(principal), "{principal} {action}");
            }
        }
    }

    #[test]
    fn auditors_read_everything() {
        for action in actions().filter(|action| action.is_read()) {
            assert!(action.allows(Auditor), "{action}");
        }
    }

    #[test]
    fn every_role_may_do_what_lesser_roles_may() {
        for action in actions() {
            for (lesser, greater) in [
                (Viewer, Member),
                (Member, Owner),
                (Owner, Admin),
                (Viewer, Auditor),
                (Auditor, Admin),
            ] {
                assert!(!action.allows(lesser) || action.allows(greater), "{greater} {action}");
            }
        }
    }

    #[test]
    fn only_platform_roles_reach_platform_objects() {
        for action in actions().filter(|action| action.kind() == SubjectKind::Platform) {
            for principal in [Viewer, Member, Owner] {
                assert!(!action.allows(principal), "{principal} {action}");
            }
        }
    }

    #[test]
    fn needed_role_is_the_least_that_may() {
        let needs = |kind, verb| Action::new(kind, verb).needs();
        assert_eq!(needs(SubjectKind::Deployment, Verb::Create), Some(Member));
        assert_eq!(needs(SubjectKind::Invite, Verb::Delete), Some(Owner));
        assert_eq!(needs(SubjectKind::Platform, Verb::Read), Some(Auditor));
        assert_eq!(needs(SubjectKind::Platform, Verb::Update), Some(Admin));
        assert_eq!(needs(SubjectKind::Event, Verb::Delete), None);
    }
}
