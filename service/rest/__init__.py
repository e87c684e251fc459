"""The REST API over the application: `create_app(application, tokens)`; one router per resource."""
