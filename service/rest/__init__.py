"""service.rest: HTTP over the house: `create_app(house, tokens)`; one router a noun."""
