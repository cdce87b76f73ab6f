use super::*;
use crate::testing::{Answer, ask, request, with_headers};
use request_pipeline::{Authorizer, InfoSource};

struct Anybody;

#[async_trait::async_trait]
impl Authorizer for Anybody {
    async fn authorize(&self, _: &mut ClientRequest, _: &dyn InfoSource) -> Result<(), Response> {
        Ok(())
    }
}

fn staticweb(url_base: &str) -> Staticweb {
    Staticweb::new(&StaticwebSettings {
        url_base: url_base.into(),
    })
}

/// A site of one index file, `sub/index.html`, and one page for what is missing.
fn site() -> Answer {
    let answer = Answer::new(|request| match (&*request.path, request.query.as_str()) {
        ("/v1/a/c/sub/index.html", _) => reply::html(200, "index".into()),
        ("/v1/a/c/404error.html", _) => reply::html(200, "lost".into()),
        ("/v1/a/c/plain", _) => reply::html(200, "plain".into()),
        ("/v1/a/c", query) if query.ends_with("prefix=dir/&limit=1") => reply::plain(200, r#"[{"subdir": "dir/x/"}]"#),
        ("/v1/a/c", query) if query.ends_with("delimiter=/") => reply::plain(200, r#"[{"subdir": "dir/"}]"#),
        ("/v1/a/c", _) => reply::plain(200, "[]"),
        _ => reply::status(404),
    });
    let meta = [
        ("web-index", "index.html"),
        ("web-error", "error.html"),
        ("web-listings", "t"),
    ];
    let meta = meta.map(|(name, value)| (name.to_owned(), value.to_owned()));
    *answer.container.lock().unwrap() = Arc::new(ContainerInfo {
        status: 204,
        meta: meta.into(),
        ..ContainerInfo::default()
    });
    answer
}

fn visitor(method: &str, path: &str) -> ClientRequest {
    let mut request = with_headers(request(method, path), &[("host", "h:1")]);
    request.authorizer = Some(Arc::new(Anybody));
    request
}

async fn visit(request: ClientRequest) -> (u16, String) {
    let answer = ask(staticweb(""), request, site()).await;
    let status = answer.status().as_u16();
    let location = answer.headers().get(LOCATION).map(|l| l.to_str().unwrap().to_owned());
    let body = String::from_utf8(answer.into_body().collect(9999).await.unwrap().to_vec()).unwrap();
    (status, location.unwrap_or(body))
}

#[tokio::test]
async fn visitors_see_a_site() {
    for (path, expected) in [
        ("/v1/a/c", (301, "http://h:1/v1/a/c/")),
        ("/v1/a/c/sub", (301, "http://h:1/v1/a/c/sub/")),
        ("/v1/a/c/sub/", (200, "index")),
        ("/v1/a/c/dir", (301, "http://h:1/v1/a/c/dir/")),
        ("/v1/a/c/nosuch", (404, "lost")),
        ("/v1/a/c/nosuch/", (404, "lost")),
        ("/v1/a/c/plain", (200, "plain")),
    ] {
        let (status, seen) = visit(visitor("GET", path)).await;
        assert_eq!((status, seen.as_str()), expected, "{path}");
    }
    let (status, page) = visit(visitor("GET", "/v1/a/c/")).await;
    assert!(status == 200 && page.contains("<a href=\"./dir/\">dir/</a>"), "{page}");
    assert_eq!(visit(visitor("HEAD", "/v1/a/c/nosuch")).await, (404, String::new()));
}

#[tokio::test]
async fn users_see_storage_unless_they_want_the_site() {
    let mut user = visitor("GET", "/v1/a/c");
    user.remote_user = Some("a,a:u".into());
    assert_eq!(visit(user.without_body()).await, (200, "[]".into()));
    let web = with_headers(user.without_body(), &[("x-web-mode", "TRUE")]);
    assert_eq!(visit(web).await.0, 301);
    user.remote_user = Some(BY_SIGNED_URL.into());
    assert_eq!(visit(user).await.0, 301);
    assert_eq!(visit(request("GET", "/v1/a/c")).await, (200, "[]".into()));
}

#[tokio::test]
async fn redirects_lead_where_the_operator_says() {
    for (base, expected) in [
        ("https:", "https://h:1/v1/a/c/"),
        ("https://", "https://h:1/v1/a/c/"),
        ("//www.example.com:8080", "http://www.example.com:8080/v1/a/c/"),
        ("http://www.example.com", "http://www.example.com/v1/a/c/"),
    ] {
        let answer = ask(staticweb(base), visitor("GET", "/v1/a/c"), site()).await;
        assert_eq!(answer.headers()[LOCATION], expected);
    }
}
