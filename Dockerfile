# The server, as user 65532, with its store at /data. `docker buildx build --platform linux/amd64,linux/arm64 .` builds for both.
FROM --platform=$BUILDPLATFORM rust:1-bookworm AS build
ARG TARGETARCH
WORKDIR /source
RUN case "$TARGETARCH" in \
        arm64) echo aarch64-unknown-linux-gnu >/target; packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;; \
        *) echo x86_64-unknown-linux-gnu >/target; packages="gcc-x86-64-linux-gnu libc6-dev-amd64-cross" ;; \
    esac; \
    [ "$(dpkg --print-architecture)" = "$TARGETARCH" ] || (apt-get update && apt-get install --yes --no-install-recommends $packages); \
    rustup target add "$(cat /target)"
ENV CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=x86_64-linux-gnu-gcc
COPY . .
RUN cargo build --release --locked --features server,viewer,search,mcp,postgres,archives --target "$(cat /target)" \
    && cp "target/$(cat /target)/release/convo" /convo \
    && mkdir /data

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /convo /usr/local/bin/convo
COPY --from=build --chown=65532:65532 /data /data
VOLUME /data
EXPOSE 8080
ENV CONVO_STORE=sled:/data/store CONVO_SERVER__LISTEN=0.0.0.0:8080 CONVO_AUTH__KEYS_FILE=/data/keys.json
HEALTHCHECK --interval=10s --start-period=5m --start-interval=1s CMD ["convo", "healthcheck"]
ENTRYPOINT ["convo"]
CMD ["serve"]
