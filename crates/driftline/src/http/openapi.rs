//! The OpenAPI 3.1 document of the routes, made from their table and from the types of what
//! they take and answer.

use super::params::{Param, ParamKind, TEXT_CHARS_MAX, TEXTS_MAX};
use super::routes::{self, Gate, Route, RouteAnswer};
use crate::verbs::registry::Shape;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value as Json, json};
use std::sync::LazyLock;

/// The document, made once.
pub fn document() -> &'static Map<String, Json> {
    static DOCUMENT: LazyLock<Map<String, Json>> = LazyLock::new(|| match make() {
        Json::Object(document) => document,
        _ => Map::new(),
    });
    &DOCUMENT
}

fn make() -> Json {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut schemas = settings.into_generator();
    let mut paths: Map<String, Json> = Map::new();
    for route in routes::all() {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.name().to_lowercase()] = operation(route, &mut schemas);
    }
    let mut components = schemas.take_definitions(true);
    components.insert("Problem".into(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Driftline",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A searchable, linked copy of a changing web. Cursors are opaque; \
                 times are milliseconds since 1970; errors are problem details (RFC 9457).",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": components,
        },
    })
}

fn problem() -> Json {
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail", "instance"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "instance": {"type": "string"},
        },
    })
}

fn operation(route: &Route, schemas: &mut SchemaGenerator) -> Json {
    let mut operation = json!({
        "summary": route.about,
        "operationId": operation_id(route),
        "parameters": route.params.iter().map(|it| parameter(route, it)).collect::<Vec<_>>(),
        "responses": responses(route, schemas),
    });
    if let Some(shape) = route.body {
        let schema = written(shape, schemas);
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    match route.gate {
        Gate::Open => operation["security"] = json!([]),
        Gate::Token => {}
        Gate::Needs(needs) => {
            operation["tags"] = json!([needs.area.name()]);
            operation["x-role"] = json!(needs.role.name());
        }
    }
    operation
}

fn written(shape: Shape, schemas: &mut SchemaGenerator) -> Json {
    shape(schemas).to_value()
}

fn responses(route: &Route, schemas: &mut SchemaGenerator) -> Json {
    let problem = |about: &str| {
        let schema = json!({"$ref": "#/components/schemas/Problem"});
        json!({
            "description": about,
            "content": {"application/problem+json": {"schema": schema}},
        })
    };
    let content = match &route.answer {
        RouteAnswer::Json(shape, _) => {
            json!({"application/json": {"schema": written(*shape, schemas)}})
        }
        RouteAnswer::Text(_, _) => json!({"text/plain": {"schema": {"type": "string"}}}),
    };
    let mut responses = json!({
        "200": {"description": "The answer", "content": content},
        "304": {"description": "The answer has not changed"},
        "400": problem("The request is invalid"),
        "414": {"description": "The URL is too long"},
        "431": {"description": "The request header is too long"},
        "421": problem("The server does not serve the requested host name"),
        "500": problem("An internal error; the server's log has the details under the number of the problem"),
        "503": problem("The server is too busy, or the data cannot be reached"),
    });
    if route.gate != Gate::Open {
        responses["401"] = problem("The token is missing or invalid");
        responses["403"] = problem("The token does not permit this");
        responses["429"] = problem("Too many requests with this token");
    }
    if route.may_miss || route.gate == Gate::Token {
        responses["404"] = problem("There is no such thing");
    }
    if route.method != routes::Method::Get {
        responses["409"] = problem("The current state does not allow this");
    }
    if route.body.is_some() {
        responses["408"] = problem("The body took too long");
        responses["413"] = problem("The body is too large");
        responses["415"] = problem("The body is not JSON");
    }
    responses
}

fn operation_id(route: &Route) -> String {
    let words = route.path.trim_start_matches('/').replace(['{', '}'], "");
    format!("{}_{}", route.method.name().to_lowercase(), words.replace(['/', '.', '-'], "_"))
}

fn parameter(route: &Route, param: &Param) -> Json {
    let in_path = route.path.contains(&format!("{{{}}}", param.name));
    let text = json!({"type": "string", "minLength": 1, "maxLength": TEXT_CHARS_MAX});
    let mut schema = match &param.kind {
        ParamKind::Text => text,
        ParamKind::Number { least, most } => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        ParamKind::Choice(of) => json!({"type": "string", "enum": of}),
        ParamKind::Flag => json!({"type": "boolean"}),
        ParamKind::Texts => json!({"type": "array", "items": text, "maxItems": TEXTS_MAX}),
    };
    if let Some(default) = &param.default {
        schema["default"] = default.clone();
    }
    json!({
        "name": param.name,
        "in": if in_path { "path" } else { "query" },
        "required": param.is_required,
        "description": param.about,
        "schema": schema,
    })
}
