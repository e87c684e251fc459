"""service: the composition root: settings, the loops, REST, the page, the commands.

In: a settings file, the environment, a state directory, HTTP. Out: HTTP, exit codes, sentences for people.
Every adapter is chosen here and nowhere else; no rule about disks or drains is written here.

`up` starts a process: it reads the `settings`, prepares the `state_directory`, loads the `tokens`, builds the
`application` and serves it by the `http_server`. The `application` combines `scoring/` (from readings to outlooks),
`drains/` (requests about drains), the `fleet` as it is known now, `notifications/` and `retention`; the `scheduler`
runs them. `rest/` with the `page/`, and `cli/`, are built on the application; `demo/` gives it a simulated world.
"""
