//! The routes of the REST API, as data: the one place that says which exist and who may use them.
//!
//! The client builds its addresses from these constants and the server checks that it serves each
//! of them and asks for that permission, so the three cannot drift apart.
//!
//! A path segment is fixed text, `{name}`, or `{name}:verb`. A run id may contain colons; that is
//! no ambiguity, since a POST on a run or task instance always ends with a verb and a GET never
//! does. `{task}` is `task_id` or `task_id;map_index`; `{attempt}` is an attempt's id, its decimal
//! token or `EPOCH-COUNTER`.

use std::fmt;

/// What stands before every path.
pub const PREFIX: &str = "/api/v1";

/// The methods in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// As in a request line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a token must be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// No token needed.
    Public,
    DagRead,
    DagWrite,
    RunRead,
    RunWrite,
    PoolWrite,
    SecretWrite,
    SecretReveal,
    WorkerWrite,
    SystemRead,
    ConfigRead,
    TokenWrite,
}

impl Permission {
    /// The scope's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::DagRead => "dag:read",
            Self::DagWrite => "dag:write",
            Self::RunRead => "run:read",
            Self::RunWrite => "run:write",
            Self::PoolWrite => "pool:write",
            Self::SecretWrite => "secret:write",
            Self::SecretReveal => "secret:reveal",
            Self::WorkerWrite => "worker:write",
            Self::SystemRead => "system:read",
            Self::ConfigRead => "config:read",
            Self::TokenWrite => "token:write",
        }
    }
}

/// What a token is for. `Worker` may use the execution API and nothing here but the public routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Worker,
    Viewer,
    Operator,
    Author,
    Admin,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 5] =
        [Self::Worker, Self::Viewer, Self::Operator, Self::Author, Self::Admin];

    /// The role's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Author => "author",
            Self::Admin => "admin",
        }
    }

    /// The role of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }

    /// Whether this role may do that.
    pub const fn allows(self, permission: Permission) -> bool {
        use Permission as P;
        match permission {
            P::Public => true,
            P::DagRead | P::RunRead | P::SystemRead => !matches!(self, Self::Worker),
            P::DagWrite | P::RunWrite => {
                matches!(self, Self::Operator | Self::Author | Self::Admin)
            }
            P::PoolWrite | P::SecretWrite | P::WorkerWrite => {
                matches!(self, Self::Operator | Self::Admin)
            }
            P::ConfigRead | P::SecretReveal | P::TokenWrite => matches!(self, Self::Admin),
        }
    }
}

/// One route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The constant's name, in small letters: the handler's name too.
    pub name: &'static str,
    pub method: Method,
    /// Below [`PREFIX`].
    pub path: &'static str,
    pub permission: Permission,
    /// One line for the documentation: query or body -> answer.
    pub summary: &'static str,
}

macro_rules! routes {
    ($($constant:ident $name:literal $method:ident $path:literal $permission:ident $summary:literal;)*) => {
        $(
            #[doc = $summary]
            pub const $constant: Route = Route {
                name: $name, method: Method::$method, path: $path,
                permission: Permission::$permission, summary: $summary,
            };
        )*
        /// Every route.
        pub const ALL: &[Route] = &[$($constant,)*];
    };
}

routes! {
    DAG_LIST "dag_list" Get "/dags" DagRead "DagQuery -> Page<Dag>, by dag_id";
    DAG_SHOW "dag_show" Get "/dags/{dag_id}" DagRead "-> DagDetail";
    DAG_PATCH "dag_patch" Patch "/dags/{dag_id}" DagWrite "DagPatch, DryRun -> PauseEffect";
    DAG_VERSIONS "dag_versions" Get "/dags/{dag_id}/versions" DagRead "ListQuery -> Page<DagVersion>, newest first";
    DAG_VERSION "dag_version" Get "/dags/{dag_id}/versions/{version}" DagRead "-> DagVersionDetail; `latest` is the newest";
    DAG_NEXT "dag_next" Get "/dags/{dag_id}/next" DagRead "SlotQuery -> Page<Slot>";
    DAG_EXPLAIN "dag_explain" Get "/dags/{dag_id}/explain" DagRead "-> Explain; also of a DAG whose file cannot be read";
    SCHEDULE "schedule" Get "/schedule" DagRead "ListQuery -> Page<NextRun>, soonest first";
    IMPORT_ERRORS "import_errors" Get "/import-errors" DagRead "ListQuery -> Page<ImportError>";
    RUN_TRIGGER "run_trigger" Post "/dags/{dag_id}/runs" RunWrite "TriggerRun -> 202 Run, Location";
    RUN_LIST "run_list" Get "/dags/{dag_id}/runs" RunRead "RunQuery -> Page<Run>, newest first";
    RUN_LIST_ALL "run_list_all" Get "/runs" RunRead "RunQuery -> Page<Run> of all DAGs, newest first";
    RUN_SHOW "run_show" Get "/dags/{dag_id}/runs/{run_id}" RunRead "-> Run";
    RUN_PATCH "run_patch" Patch "/dags/{dag_id}/runs/{run_id}" RunWrite "RunPatch -> Run";
    RUN_DELETE "run_delete" Delete "/dags/{dag_id}/runs/{run_id}" RunWrite "-> 204; 409 still-active unless it has ended";
    RUN_CANCEL "run_cancel" Post "/dags/{dag_id}/runs/{run_id}:cancel" RunWrite "Action -> Run";
    RUN_KILL "run_kill" Post "/dags/{dag_id}/runs/{run_id}:kill" RunWrite "Action -> Run; cancel without the grace";
    RUN_PAUSE "run_pause" Post "/dags/{dag_id}/runs/{run_id}:pause" RunWrite "Action -> Run";
    RUN_RESUME "run_resume" Post "/dags/{dag_id}/runs/{run_id}:resume" RunWrite "Action -> Run";
    RUN_CLEAR "run_clear" Post "/dags/{dag_id}/runs/{run_id}:clear" RunWrite "Clear, DryRun -> ChangePlan";
    RUN_EXPLAIN "run_explain" Get "/dags/{dag_id}/runs/{run_id}/explain" RunRead "-> Explain";
    TASK_LIST "task_list" Get "/dags/{dag_id}/runs/{run_id}/tasks" RunRead "TaskQuery -> Page<TaskInstance>, topological";
    TASK_SHOW "task_show" Get "/dags/{dag_id}/runs/{run_id}/tasks/{task}" RunRead "-> TaskInstance";
    TASK_CLEAR "task_clear" Post "/dags/{dag_id}/runs/{run_id}/tasks/{task}:clear" RunWrite "Clear, DryRun -> ChangePlan";
    TASK_MARK "task_mark" Post "/dags/{dag_id}/runs/{run_id}/tasks/{task}:mark" RunWrite "Mark, DryRun -> ChangePlan";
    TASK_APPROVE "task_approve" Post "/dags/{dag_id}/runs/{run_id}/tasks/{task}:approve" RunWrite "Action -> ChangePlan; of a deferred task that asks a person";
    TASK_REJECT "task_reject" Post "/dags/{dag_id}/runs/{run_id}/tasks/{task}:reject" RunWrite "Action -> ChangePlan; of a deferred task that asks a person";
    TASK_ATTEMPTS "task_attempts" Get "/dags/{dag_id}/runs/{run_id}/tasks/{task}/attempts" RunRead "ListQuery -> Page<Attempt>, by token; of all instances if a mapped task has no index";
    TASK_OUTPUTS "task_outputs" Get "/dags/{dag_id}/runs/{run_id}/tasks/{task}/outputs" RunRead "-> Outputs";
    TASK_RENDERED "task_rendered" Get "/dags/{dag_id}/runs/{run_id}/tasks/{task}/rendered" RunRead "-> Rendered";
    TASK_EXPLAIN "task_explain" Get "/dags/{dag_id}/runs/{run_id}/tasks/{task}/explain" RunRead "-> Explain";
    ATTEMPT_LIST "attempt_list" Get "/attempts" RunRead "AttemptQuery -> Page<Attempt>, by token";
    ATTEMPT_SHOW "attempt_show" Get "/attempts/{attempt}" RunRead "-> Attempt";
    ATTEMPT_EVENTS "attempt_events" Get "/attempts/{attempt}/events" RunRead "ListQuery -> Page<Event>, oldest first";
    ATTEMPT_LOG "attempt_log" Get "/attempts/{attempt}/log" RunRead "LogQuery -> LogPage";
    ATTEMPT_KILL "attempt_kill" Post "/attempts/{attempt}:kill" RunWrite "Action -> Attempt";
    ATTEMPT_CONFIRM_DEAD "attempt_confirm_dead" Post "/attempts/{attempt}:confirm-dead" RunWrite "Action -> Attempt";
    ATTEMPT_REFUSED_WRITES "attempt_refused_writes" Get "/attempts/{attempt}/refused-writes" RunRead "ListQuery -> Page<Event>: what it tried after its end, oldest first";
    INCIDENT_LIST "incident_list" Get "/incidents" SystemRead "IncidentQuery -> Page<Incident>, the newest first";
    INCIDENT_SHOW "incident_show" Get "/incidents/{id}" SystemRead "-> IncidentDetail";
    INCIDENT_CLOSE "incident_close" Post "/incidents/{id}:close" RunWrite "Action with a reason -> Incident";
    BACKFILL_CREATE "backfill_create" Post "/backfills" RunWrite "BackfillCreate, DryRun -> 201 Backfill";
    BACKFILL_PREVIEW "backfill_preview" Post "/backfills:preview" RunRead "BackfillCreate -> BackfillPreview: what it would do";
    BACKFILL_LIST "backfill_list" Get "/backfills" RunRead "BackfillQuery -> Page<Backfill>, the newest first";
    BACKFILL_SHOW "backfill_show" Get "/backfills/{id}" RunRead "-> Backfill with its progress";
    BACKFILL_PAUSE "backfill_pause" Post "/backfills/{id}:pause" RunWrite "Action -> Backfill";
    BACKFILL_RESUME "backfill_resume" Post "/backfills/{id}:resume" RunWrite "Action -> Backfill";
    BACKFILL_CANCEL "backfill_cancel" Post "/backfills/{id}:cancel" RunWrite "Action -> Backfill; its runs are stopped";
    CALLBACK_LIST "callback_list" Get "/callbacks" RunRead "CallbackQuery -> Page<Callback>, oldest first: what is told to the outside";
    CALLBACK_SHOW "callback_show" Get "/callbacks/{id}" RunRead "-> Callback";
    CALLBACK_RETRY "callback_retry" Post "/callbacks/{id}:retry" RunWrite "Action -> Callback; another round for one that is dead";
    ASSET_LIST "asset_list" Get "/assets" DagRead "ListQuery -> Page<Asset>, by name";
    ASSET_SHOW "asset_show" Get "/assets/{name}" DagRead "-> AssetDetail; a URI is percent-encoded";
    ASSET_EVENTS "asset_events" Get "/assets/events" RunRead "AssetEventsQuery -> Page<AssetEvent>, the newest first";
    ASSET_EMIT "asset_emit" Post "/assets/{name}/events" RunWrite "AssetEmit -> 201 AssetEvent; somebody outside has changed it";
    HELD_LIST "held_list" Get "/held" RunRead "ListQuery -> Page<HeldTask>: those that wait for a person or for evidence";
    HELD_RESOLVE "held_resolve" Post "/held/{attempt}:resolve" RunWrite "Resolve -> Attempt; the task of the attempt is decided";
    EVENTS "events" Get "/events" RunRead "EventQuery -> Page<Event>, oldest first; long poll";
    POOL_LIST "pool_list" Get "/pools" DagRead "ListQuery -> Page<Pool>, by name";
    POOL_SHOW "pool_show" Get "/pools/{name}" DagRead "-> Pool";
    POOL_PUT "pool_put" Put "/pools/{name}" PoolWrite "PoolPut -> Pool";
    POOL_DELETE "pool_delete" Delete "/pools/{name}" PoolWrite "-> 204; 409 pool-in-use";
    VARIABLE_LIST "variable_list" Get "/variables" DagRead "KeptQuery -> Page<Kept>, by name; masked, or all with `reveal` (secret:reveal)";
    VARIABLE_SHOW "variable_show" Get "/variables/{key}" DagRead "KeptQuery -> Kept; masked, unless `reveal` (secret:reveal)";
    VARIABLE_PUT "variable_put" Put "/variables/{key}" SecretWrite "KeptPut -> Kept, masked";
    VARIABLE_DELETE "variable_delete" Delete "/variables/{key}" SecretWrite "-> 204";
    CONNECTION_LIST "connection_list" Get "/connections" DagRead "KeptQuery -> Page<Kept>, by name; masked, or all with `reveal` (secret:reveal)";
    CONNECTION_SHOW "connection_show" Get "/connections/{id}" DagRead "KeptQuery -> Kept; masked, unless `reveal` (secret:reveal)";
    CONNECTION_PUT "connection_put" Put "/connections/{id}" SecretWrite "KeptPut -> Kept, masked";
    CONNECTION_DELETE "connection_delete" Delete "/connections/{id}" SecretWrite "-> 204";
    SECRET_LIST "secret_list" Get "/secrets" DagRead "KeptQuery -> Page<Kept>, by name; names only";
    SECRET_SHOW "secret_show" Get "/secrets/{name}" DagRead "KeptQuery -> Kept; masked, unless `reveal` (secret:reveal)";
    SECRET_PUT "secret_put" Put "/secrets/{name}" SecretWrite "KeptPut -> Kept, masked";
    SECRET_DELETE "secret_delete" Delete "/secrets/{name}" SecretWrite "-> 204";
    CONNECTION_TEST "connection_test" Post "/connections/{id}:test" SecretWrite "-> ConnectionTest: whether its host answers";
    VAULT_ROTATE "vault_rotate" Post "/secrets:rotate" SecretReveal "-> Rotated; everything is sealed anew with the first key";
    WORKER_LIST "worker_list" Get "/workers" SystemRead "WorkerQuery -> Page<Worker>, by name";
    WORKER_SHOW "worker_show" Get "/workers/{id}" SystemRead "-> Worker; `id` may be a name: its newest incarnation";
    WORKER_DRAIN "worker_drain" Post "/workers/{id}:drain" WorkerWrite "Action, DryRun -> Worker; claims nothing more";
    WORKER_RESUME "worker_resume" Post "/workers/{id}:resume" WorkerWrite "Action -> Worker";
    WORKER_REMOVE "worker_remove" Delete "/workers/{id}" WorkerWrite "-> 204; 409 still-active unless it is over and nothing is left of it";
    WORKER_CONFIRM_DEAD "worker_confirm_dead" Post "/workers:confirm-dead" WorkerWrite "ConfirmDead, DryRun -> Page<Worker>: those that were declared";
    INSPECT "inspect" Get "/inspect/{question}" SystemRead "ListQuery -> Page<Finding>; schedulers, zombies, orphans, triggers, callbacks, ghosts";
    TOKEN_LIST "token_list" Get "/tokens" TokenWrite "ListQuery -> Page<Token>";
    TOKEN_CREATE "token_create" Post "/tokens" TokenWrite "TokenCreate -> 201 TokenCreated";
    TOKEN_REVOKE "token_revoke" Delete "/tokens/{id}" TokenWrite "-> 204";
    HEALTH_LIVE "health_live" Get "/health/live" Public "-> Health of the process alone";
    HEALTH_READY "health_ready" Get "/health/ready" Public "-> Health of every component; 503 when not ok";
    VERSION "version" Get "/version" SystemRead "-> Version";
    DOCTOR "doctor" Get "/doctor" SystemRead "-> Doctor";
    CONFIG "config" Get "/config" ConfigRead "-> Page<ConfigValue>";
    OPENAPI "openapi" Get "/openapi.json" Public "-> this API as an OpenAPI 3.1 document";
}

impl Route {
    /// The address of one resource: `args` in the order of the path's names, percent-encoded here.
    /// Missing arguments become empty segments, which no server route matches.
    pub fn url(&self, args: &[&str]) -> String {
        let mut args = args.iter();
        let mut url = String::from(PREFIX);
        for segment in self.path.split('/').skip(1) {
            url.push('/');
            let (name, verb) = split_verb(segment);
            if name.starts_with('{') {
                url.push_str(&encode(args.next().copied().unwrap_or_default()));
                if let Some(verb) = verb {
                    url.push(':');
                    url.push_str(verb);
                }
            } else {
                url.push_str(segment);
            }
        }
        url
    }

    /// The path's arguments if this route matches `path` (below [`PREFIX`], still encoded).
    fn matches(&self, path: &str) -> Option<Vec<String>> {
        let (mut ours, mut theirs) = (self.path.split('/'), path.split('/'));
        let mut args = Vec::new();
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return Some(args),
                (Some(pattern), Some(segment)) => capture(pattern, segment, &mut args)?,
                _ => return None,
            }
        }
    }
}

/// `{name}:verb` into its parts.
fn split_verb(segment: &str) -> (&str, Option<&str>) {
    segment.split_once(':').map_or((segment, None), |(name, verb)| (name, Some(verb)))
}

/// Whether a segment fits its pattern; what it captures is appended to `args`.
fn capture(pattern: &str, segment: &str, args: &mut Vec<String>) -> Option<()> {
    let (name, verb) = split_verb(pattern);
    if !name.starts_with('{') {
        return (pattern == segment).then_some(());
    }
    let decoded = decode(segment)?;
    let value = match verb {
        Some(verb) => decoded.strip_suffix(verb)?.strip_suffix(':')?,
        None => &decoded,
    };
    if value.is_empty() {
        return None;
    }
    args.push(value.into());
    Some(())
}

/// The route of a request and its decoded path arguments; fixed segments win over captures.
pub fn find(method: &str, full_path: &str) -> Option<(&'static Route, Vec<String>)> {
    let path = full_path.strip_prefix(PREFIX)?;
    ALL.iter()
        .filter(|route| route.method.as_str() == method)
        .filter_map(|route| route.matches(path).map(|args| (route, args)))
        .min_by_key(|(_, args)| args.len())
}

/// Percent-encodes one path segment; what RFC 3986 lets stand in a segment and ids use, stays.
pub fn encode(segment: &str) -> String {
    let mut out = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:@=;".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Undoes percent-encoding; `None` for a broken escape or text that is not UTF-8.
pub fn decode(segment: &str) -> Option<String> {
    let mut out = Vec::with_capacity(segment.len());
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            out.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_route_finds_itself_from_the_address_it_builds() {
        for route in ALL {
            let names = route.path.matches('{').count();
            let all = ["a b", "manual__2026-09-22T14:03:11.000Z_abcd", "load;3"];
            let url = route.url(&all[..names]);
            let (found, args) = find(route.method.as_str(), &url).unwrap_or_else(|| {
                panic!("{} does not match its own {url}", route.name);
            });
            assert_eq!(found.name, route.name, "{url}");
            assert_eq!(args, all[..names], "{url}");
        }
    }

    #[test]
    fn names_and_method_path_pairs_are_unique() {
        for (index, route) in ALL.iter().enumerate() {
            for other in &ALL[..index] {
                assert_ne!(route.name, other.name);
                assert_ne!((route.method, route.path), (other.method, other.path));
            }
        }
    }

    #[test]
    fn what_is_no_route_finds_nothing() {
        for (method, path) in [
            ("GET", "/api/v1/dags/"),
            ("GET", "/api/v1/dags/x/y"),
            ("GET", "/dags"),
            ("POST", "/api/v1/dags/x/runs/r"),
            ("POST", "/api/v1/dags/x/runs/r:explode"),
            ("POST", "/api/v1/dags/x/runs/:cancel"),
            ("GET", "/api/v1/dags/%zz"),
            ("GET", "/api/v1/dags/%ff"),
        ] {
            assert!(find(method, path).is_none(), "{method} {path}");
        }
    }

    #[test]
    fn a_worker_token_reads_nothing_and_a_viewer_writes_nothing() {
        for route in ALL {
            let public = route.permission == Permission::Public;
            assert_eq!(Role::Worker.allows(route.permission), public, "{}", route.name);
            assert!(Role::Admin.allows(route.permission));
            // A preview writes nothing; it is asked with a body.
            if route.method != Method::Get && !route.name.ends_with("_preview") {
                assert!(!Role::Viewer.allows(route.permission), "{}", route.name);
            }
        }
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
    }
}
