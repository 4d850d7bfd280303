"""The Flask application, put together from what it is given."""

from importlib.resources import files

from flask import Blueprint, Flask, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from msgexchange.web import problems
from msgexchange.web.admin import admin_calls
from msgexchange.web.answers import json_answer, with_headers
from msgexchange.web.deps import WebDeps
from msgexchange.web.flights import flights
from msgexchange.web.health import health_value
from msgexchange.web.messages import messages
from msgexchange.web.references import references
from msgexchange.web.sending import sending


def create_app(deps: WebDeps) -> Flask:
    """A WSGI application with every call of spec 1.5; it holds nothing but ``deps``."""
    app = Flask("msgexchange.web", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = deps.body_bytes_max
    problems.install(app, body_bytes_max=deps.body_bytes_max)
    app.after_request(with_headers)
    for routes in (sending(deps), flights(deps), messages(deps), references(deps), watching(deps)):
        app.register_blueprint(routes)
    if deps.admin is not None:
        app.register_blueprint(admin_calls(deps.admin))
    return app


def watching(deps: WebDeps) -> Blueprint:
    """The calls for those who watch the process and for those who write clients."""
    routes = Blueprint("watching", __name__)
    document = files("msgexchange.web").joinpath("openapi.json").read_bytes()

    @routes.get("/health/live")
    def live() -> Response:
        health = deps.health()
        return json_answer(health_value(health), 200 if health.live else 503)

    @routes.get("/health/ready")
    def ready() -> Response:
        health = deps.health()
        return json_answer(health_value(health), 200 if health.ready else 503)

    @routes.get("/metrics")
    def metrics() -> Response:
        return Response(generate_latest(deps.metrics), content_type=CONTENT_TYPE_LATEST)

    @routes.get("/openapi.json")
    def openapi() -> Response:
        return Response(document, mimetype="application/json")

    return routes
