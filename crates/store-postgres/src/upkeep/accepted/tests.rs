use super::{PAGE, forget};
use crate::testing::Fixture;

#[tokio::test]
async fn messages_are_forgotten_when_their_time_is_over() {
    let fixture = Fixture::new().await;
    let over = PAGE * 2 + 1;
    fixture
        .execute(&format!(
            "INSERT INTO accepted SELECT n % 7, '', '', 'over-' || n, 't', 0, '', extract(epoch FROM now()) * 1000 - n
                FROM generate_series(1, {over}) AS n;
             INSERT INTO accepted SELECT n % 7, '', '', 'kept-' || n, 't', 0, '', extract(epoch FROM now()) * 1000 + 600000
                FROM generate_series(1, 3) AS n"
        ))
        .await;
    // What somebody has at this moment is left for the next time.
    let other = fixture.database.connect().await.unwrap();
    other.client().batch_execute("BEGIN; SELECT 1 FROM accepted WHERE message_id = 'over-1' FOR UPDATE").await.unwrap();
    forget(&fixture.pool).await.unwrap();
    assert_eq!(fixture.number("SELECT count(*) FROM accepted WHERE message_id LIKE 'over-%'").await, 1);
    other.client().batch_execute("ROLLBACK").await.unwrap();
    forget(&fixture.pool).await.unwrap();
    assert_eq!(fixture.number("SELECT count(*) FROM accepted WHERE message_id LIKE 'over-%'").await, 0);
    assert_eq!(fixture.rows(["accepted"]).await, [3]);
}
