//! PostgreSQL: a bounded pool for transactions, a few shared connections for pipelined reads.
//!
//! Two things happen after a commit, because inside it they would serialise all commits: events get
//! their position in the log (see [`crate::event`]), and other servers are notified. Both are
//! batched: many commits, one round.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use futures_util::future;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::sync::{Mutex, Notify};
use tokio_postgres::config::SslMode;
use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};
use tokio_postgres::{AsyncMessage, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::Signals;
use super::any_certificate::AnyCertificate;
use super::value::{Row, Value};
use crate::{Error, Result};
use base::task;

const WRITERS: usize = 16;
const READERS: usize = 4;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval of numbering events and notifying other servers without a signal.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
const CHANNEL: &str = "paddock";

pub(crate) struct Postgres {
    config: Config,
    tls: MakeRustlsConnect,
    pool: Pool,
    readers: Vec<Mutex<Option<Arc<Object>>>>,
    next_reader: AtomicUsize,
    /// A commit that other servers should learn of.
    committed: Notify,
}

impl Postgres {
    pub(crate) async fn open(url: &str, signals: &Arc<Signals>) -> Result<Arc<Self>> {
        let mut config: Config = url.parse().map_err(|e: tokio_postgres::Error| {
            let cause = std::error::Error::source(&e).map(|c| format!(": {c}")).unwrap_or_default();
            Error::Unavailable(format!("invalid database URL: {e}{cause}"))
        })?;
        config.connect_timeout(CONNECT_TIMEOUT).application_name("paddock");
        let tls = tls(config.get_ssl_mode())?;
        let recycle = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config.clone(), tls.clone(), recycle);
        let pool = Pool::builder(manager)
            .max_size(WRITERS + READERS)
            .wait_timeout(Some(WAIT_TIMEOUT))
            .create_timeout(Some(CONNECT_TIMEOUT))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|e| Error::Unavailable(e.to_string()))?;
        drop(pool.get().await?);
        let readers = (0..READERS).map(|_| Mutex::default()).collect();
        let (next_reader, committed) = (AtomicUsize::new(0), Notify::new());
        let postgres = Arc::new(Self { config, tls, pool, readers, next_reader, committed });
        task::spawn("announce", announce(Arc::downgrade(&postgres), Arc::downgrade(signals)));
        task::spawn("listen", listen(Arc::downgrade(&postgres), Arc::downgrade(signals)));
        Ok(postgres)
    }

    pub(crate) async fn begin(&self) -> Result<Write> {
        let client = self.pool.get().await?;
        client.batch_execute("BEGIN").await?;
        Ok(Write { client: Some(client) })
    }

    /// A connection shared by many readers: their statements are pipelined.
    pub(crate) async fn read(&self) -> Result<Arc<Object>> {
        let index = self.next_reader.fetch_add(1, Ordering::Relaxed) % READERS;
        let mut slot = self.readers[index].lock().await;
        if let Some(client) = slot.as_ref().filter(|client| !client.is_closed()) {
            return Ok(client.clone());
        }
        *slot = None;
        let client = self.pool.get().await?;
        client.batch_execute("SET default_transaction_read_only = on").await?;
        Ok(slot.insert(Arc::new(client)).clone())
    }

    pub(crate) fn announce(&self) {
        self.committed.notify_one();
    }

    /// Gives every new event its position in the log.
    ///
    /// Serialised by a lock, so that no reader sees a gap. Events of one subject can't overtake
    /// each other: the later transaction waited for the row.
    pub(crate) async fn number_events(&self) -> Result<u64> {
        let mut client = self.pool.get().await?;
        let tx = client.transaction().await?;
        tx.batch_execute("SELECT pg_advisory_xact_lock(7238001)").await?;
        let numbered = tx
            .execute(
                "WITH fresh AS (
                    SELECT id, row_number() OVER (ORDER BY id) AS place
                    FROM event WHERE seq IS NULL
                ), last AS (SELECT COALESCE(MAX(seq), 0) AS seq FROM event)
                UPDATE event SET seq = last.seq + fresh.place
                FROM fresh, last WHERE event.id = fresh.id",
                &[],
            )
            .await?;
        tx.commit().await?;
        Ok(numbered)
    }

    async fn notify_replicas(&self) -> Result<()> {
        let client = self.read().await?;
        Ok(client.batch_execute(&format!("NOTIFY {CHANNEL}")).await?)
    }
}

/// TLS according to `sslmode`: `require` verifies the server's certificate. The default, `prefer`,
/// would also accept a connection without TLS, so it accepts any certificate.
fn tls(mode: SslMode) -> Result<MakeRustlsConnect> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let unusable = |e: rustls::Error| Error::Unavailable(format!("TLS setup failed: {e}"));
    let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let config = match mode {
        SslMode::Require => builder.with_platform_verifier().map_err(unusable)?,
        _ => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        }
    };
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

/// After commits: numbers events, signals this process, notifies other servers.
async fn announce(postgres: Weak<Postgres>, signals: Weak<Signals>) {
    loop {
        let Some(strong) = postgres.upgrade() else { return };
        let was_signalled =
            tokio::time::timeout(POLL_INTERVAL, strong.committed.notified()).await.is_ok();
        let numbered = strong.number_events().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "numbering events failed, retrying");
            0
        });
        if numbered > 0
            && let Some(signals) = signals.upgrade()
        {
            signals.raise();
        }
        if (was_signalled || numbered > 0)
            && let Err(error) = strong.notify_replicas().await
        {
            tracing::warn!(%error, "notifying other servers failed, they will poll");
        }
    }
}

/// Receives notifications of other servers; a lost connection costs only latency.
async fn listen(postgres: Weak<Postgres>, signals: Weak<Signals>) {
    loop {
        let Some(strong) = postgres.upgrade() else { return };
        let (config, tls) = (strong.config.clone(), strong.tls.clone());
        drop(strong);
        if let Err(error) = listen_once(config, tls, &signals).await {
            tracing::warn!(%error, "listening for notifications failed, retrying");
        }
        if let Some(signals) = signals.upgrade() {
            signals.raise();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn listen_once(
    config: Config,
    tls: MakeRustlsConnect,
    signals: &Weak<Signals>,
) -> Result<()> {
    let (client, mut connection) = config.connect(tls).await?;
    let listen = format!("LISTEN {CHANNEL}");
    let mut listening = Box::pin(client.batch_execute(&listen));
    let mut is_listening = false;
    loop {
        if signals.strong_count() == 0 {
            return Ok(());
        }
        tokio::select! {
            message = future::poll_fn(|cx| connection.poll_message(cx)) => match message {
                Some(Ok(AsyncMessage::Notification(_))) => if let Some(s) = signals.upgrade() { s.raise() },
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Ok(()),
            },
            done = &mut listening, if !is_listening => {
                done?;
                is_listening = true;
            }
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}

/// A transaction. Dropping it without a commit rolls it back.
pub(crate) struct Write {
    client: Option<Object>,
}

impl Write {
    pub(crate) fn client(&self) -> &Object {
        self.client.as_ref().expect("present until commit or drop")
    }

    pub(crate) async fn commit(mut self) -> Result<()> {
        self.client().batch_execute("COMMIT").await?;
        self.client = None;
        Ok(())
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        // The connection returns to the pool only after the rollback.
        if let Some(client) = self.client.take() {
            task::spawn("rollback", async move {
                if let Err(error) = client.batch_execute("ROLLBACK").await {
                    tracing::debug!(%error, "rollback failed, connection closed");
                }
            });
        }
    }
}

pub(crate) async fn execute(client: &Object, sql: &str, params: &[Value<'_>]) -> Result<u64> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.execute(&statement, &as_dyn(params)).await?)
}

pub(crate) async fn query(client: &Object, sql: &str, params: &[Value<'_>]) -> Result<Vec<Row>> {
    let statement = client.prepare_cached(sql).await?;
    let rows = client.query(&statement, &as_dyn(params)).await?;
    rows.iter().map(owned).collect()
}

fn as_dyn<'a>(params: &'a [Value<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

fn owned(row: &tokio_postgres::Row) -> Result<Row> {
    let mut values = Vec::with_capacity(row.len());
    for (i, column) in row.columns().iter().enumerate() {
        values.push(match *column.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(i)?.map_or(Value::Null, Value::Int),
            Type::INT4 => {
                row.try_get::<_, Option<i32>>(i)?.map_or(Value::Null, |n| Value::Int(n.into()))
            }
            Type::TEXT => {
                row.try_get::<_, Option<String>>(i)?.map_or(Value::Null, |t| Value::Text(t.into()))
            }
            ref other => return Err(Error::Database(format!("unsupported column type {other}"))),
        });
    }
    Ok(Row(values.into_iter()))
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(n) if *ty == Type::INT4 => i32::try_from(*n)?.to_sql(ty, out),
            Value::Int(n) => n.to_sql(ty, out),
            Value::Text(text) => text.as_ref().to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        matches!(*ty, Type::INT4 | Type::INT8 | Type::TEXT)
    }

    to_sql_checked!();
}
