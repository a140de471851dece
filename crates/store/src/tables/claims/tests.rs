//! Claims lie at home, and everybody names the same owner.

use super::*;
use crate::testing::both_databases;

const OUTPUT: ConnectionId = ConnectionId(5);
const HOME: Part = Part(2);

fn claim(uri: &str, connection: i64, ordinal: i64) -> Claim {
    let by = ClaimingDocument {
        connection: ConnectionId(connection),
        dochash: DocHash::of(&connection.to_string()),
        part: Part(connection),
    };
    Claim { uri_hash: DocHash::of(uri).0.to_vec(), by, ordinal }
}

#[test]
fn the_last_claimant_owns_a_uri_until_it_drops_its_claim() {
    both_databases(|db| {
        let all = [claim("u", 1, 1), claim("u", 2, 2), claim("v", 1, 1), claim("u", 3, 2)];
        let hash = all[0].uri_hash.clone();
        let added = all.clone();
        db.write(move |tx| save(tx, HOME, OUTPUT, &added))?;
        let owner = || {
            let hash = hash.clone();
            let found = db.read(move |tx| load(tx, HOME, OUTPUT, std::slice::from_ref(&hash)))?;
            Ok::<_, crate::Error>(owner(&found).map(|it| it.by.connection.0))
        };
        assert_eq!(owner()?, Some(3), "of two who came at once, the same for everybody");
        db.write(|tx| save(tx, HOME, OUTPUT, &[claim("u", 3, LEAVING)]))?;
        assert_eq!(owner()?, Some(2), "who is leaving owns nothing");
        db.write(|tx| save(tx, HOME, OUTPUT, &[claim("u", 3, 3)]))?;
        for (gone, next) in [(3, Some(2)), (2, Some(1)), (2, Some(1)), (1, None)] {
            let it = claim("u", gone, 0);
            db.write(move |tx| remove(tx, HOME, OUTPUT, &[(it.uri_hash.clone(), it.by)]))?;
            assert_eq!(owner()?, next);
        }
        let first = ConnectionId(i64::MIN);
        let listed = db.read(move |tx| after(tx, Part(2), first, &[], 10))?;
        assert_eq!(listed, [ListedClaim { output: OUTPUT, claim: claim("v", 1, 1) }]);
        assert_eq!(db.write(|tx| forget(tx, Part(2), OUTPUT, 10))?, 1);
        Ok(())
    });
}

#[test]
fn claims_lie_where_documents_of_the_same_site_or_directory_do() {
    both_databases(|db| {
        let parts = db.write(|tx| settings::freeze(tx, 64))?;
        let homes = db.read(Homes::load)?;
        let part = |group: &str| Part(part_of(Some(group), "", parts).into());
        for (uri, group) in [
            ("http://www.example.co.uk/a/b?c", "example.co.uk"),
            ("http://127.0.0.1:8080/item/3", "127.0.0.1"),
            ("file:///docs/a/b.txt", "/docs/a"),
            ("sql:17", "17"),
            ("plain", "plain"),
        ] {
            assert_eq!(homes.of(uri), part(group), "{uri}");
        }
        Ok(())
    });
}
