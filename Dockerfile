# Two stages: the page and the locked packages are made in the first, only what runs is in the second.
FROM debian:12-slim AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends make python3-venv ca-certificates libgomp1 \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/predrain
COPY . .
RUN make setup && rm -rf service/page/node_modules service/page/src .git

FROM debian:12-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 libgomp1 ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --home-dir /var/lib/predrain --create-home predrain
COPY --from=build /opt/predrain /opt/predrain
USER predrain
VOLUME /var/lib/predrain
EXPOSE 8080
ENTRYPOINT ["/opt/predrain/.venv/bin/predrain"]
CMD ["up", "--state", "/var/lib/predrain"]
