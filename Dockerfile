# Two images out of the Debian packages: `--target collector`, and the service.
# hadolint global ignore=DL3008
# Debian 12 keeps its packages' versions itself; what predrain brings along is locked in uv.lock and package-lock.json.
# What all of it stands on, by the digest that your registry gives: --build-arg BASE=docker.io/library/debian@sha256:...
ARG BASE
FROM ${BASE} AS build
ARG BASE
# A name alone may be another image tomorrow.
RUN case "${BASE##*@}" in sha256:*) digest="${BASE##*@sha256:}" ;; *) digest="" ;; esac; \
    case "$digest" in *[!0-9a-f]*) digest="" ;; esac; \
    test "${#digest}" -eq 64 || { echo "give --build-arg BASE=NAME@sha256:DIGEST, of a Debian 12 (docs/how-to/install.md)"; exit 1; }
RUN apt-get -o Acquire::Retries=3 update \
 && apt-get -o Acquire::Retries=3 install -y --no-install-recommends make python3-venv ca-certificates libgomp1 \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/predrain
COPY . .
ARG SOURCE_DATE_EPOCH=315532800
RUN make deb

# A package has a stage of its own, with a step that no other stage has: buildah 1.28 (Debian 12) mounts nothing of a
# stage that comes from the cache whole, and the second of the two images would not find its package.
FROM build AS collector-package
RUN test -s dist/predrain-collector_*.deb
FROM build AS service-package
RUN test -s dist/predrain_*.deb

# Both images have ca-certificates: the packages do not depend on it, and without it no certificate of another machine is
# trusted that `ca` does not name.
# cephadm starts it privileged and as root (deploy/cephadm): smartctl needs the disks, and there is no user of Ceph's here.
FROM ${BASE} AS collector
RUN --mount=type=bind,from=collector-package,source=/opt/predrain/dist,target=/dist \
    apt-get -o Acquire::Retries=3 update \
 && apt-get -o Acquire::Retries=3 install -y --no-install-recommends ca-certificates /dist/predrain-collector_*.deb \
 && rm -rf /var/lib/apt/lists/*
ENV STATE_DIRECTORY=/var/lib/predrain-collector
VOLUME /var/lib/predrain-collector
ENTRYPOINT ["/usr/lib/predrain-collector/bin/predrain"]
CMD ["collect", "--config", "/etc/predrain/collector.toml"]

FROM ${BASE} AS service
RUN useradd --system --uid 10001 --user-group --home-dir /var/lib/predrain --create-home predrain
RUN --mount=type=bind,from=service-package,source=/opt/predrain/dist,target=/dist \
    apt-get -o Acquire::Retries=3 update \
 && apt-get -o Acquire::Retries=3 install -y --no-install-recommends ca-certificates /dist/predrain_*.deb python3-rados \
 && rm -rf /var/lib/apt/lists/*
USER 10001:10001
VOLUME /var/lib/predrain
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s \
  CMD ["/usr/lib/predrain/bin/python3", "-c", "import ssl, urllib.request as web; web.urlopen(open('/var/lib/predrain/url').read().strip() + '/healthz', timeout=5, context=ssl._create_unverified_context())"]
ENTRYPOINT ["/usr/lib/predrain/bin/predrain"]
CMD ["up"]
