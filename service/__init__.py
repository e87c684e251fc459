"""service: the composition root: settings, the loops, REST, the page, the commands.

In: a settings file, the environment, a state directory, HTTP. Out: HTTP, exit codes, sentences for people.
Every adapter is chosen here and nowhere else; no rule about disks or drains is written here.

`up` starts a process: `settings`, the `state` directory, `tokens`, the `house`, `listening`. The `house` puts together
`scoring/` (readings to outlooks), `draining/` (wishes to drains), the `fleet` as it is known now with its `tally`, what
is told (`alerts`, `changes`), what is recalled (`memory`) and dropped (`retention`), and runs them in `loops`. In front
of it stand `rest/` with the `page/`, and `cli/`; `demo/` puts a simulated world under it.
"""
