//! Every statement, with its lock and as a batch, is one that PostgreSQL understands, in the types that
//! values have.

use crate::place::PostgresDatabase;
use fencepost_store::query::all_statements;
use tokio_postgres::types::{Kind, Type};
use tokio_postgres::{Client, NoTls};

async fn client(place: &PostgresDatabase) -> Client {
    let (client, connection) = tokio_postgres::connect(place.database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn is_ours(ty: &Type) -> bool {
    [Type::INT8, Type::TEXT].contains(ty)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_statement_is_prepared() {
    let place = PostgresDatabase::new();
    let client = client(&place).await;
    let mut wrong = Vec::new();
    for stmt in all_statements() {
        let text = [stmt.postgres, stmt.lock].concat();
        match client.prepare(&text).await {
            Err(error) => wrong.push(format!("{}: {error:?}", stmt.name)),
            Ok(it) if !it.params().iter().all(is_ours) => {
                wrong.push(format!("{}: parameters {:?}", stmt.name, it.params()));
            }
            Ok(it) if !it.columns().iter().all(|c| is_ours(c.type_())) => {
                wrong.push(format!("{}: columns {:?}", stmt.name, it.columns()));
            }
            Ok(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A batch takes an array of what the single statement takes, and says with each row whose it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_batch_is_of_the_shape_of_its_statement() {
    let place = PostgresDatabase::new();
    let client = client(&place).await;
    for stmt in all_statements() {
        let Some(batch) = stmt.batch else { continue };
        let single = client.prepare(stmt.postgres).await.unwrap();
        let batch =
            client.prepare(batch.text).await.unwrap_or_else(|e| panic!("{}: {e:?}", stmt.name));
        let elements: Vec<Type> = batch
            .params()
            .iter()
            .map(|ty| {
                let Kind::Array(element) = ty.kind() else {
                    panic!("{}: {ty} is no array", stmt.name)
                };
                element.clone()
            })
            .collect();
        assert_eq!(elements, single.params(), "{}", stmt.name);
        let types = |it: &tokio_postgres::Statement| -> Vec<Type> {
            it.columns().iter().map(|c| c.type_().clone()).collect()
        };
        let (own, of_single) = (types(&batch), types(&single));
        if let Some((ord, rest)) = own.split_first() {
            assert_eq!((ord, rest), (&Type::INT8, &of_single[..]), "{}", stmt.name);
        }
    }
}
