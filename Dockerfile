# Builds Paddock into an empty image that contains only the binary and its runtime dependencies.
#
#   docker build -t paddock --build-arg COMMIT="$(git rev-parse HEAD)" .
#   docker run -p 8001:8001 -v paddock:/var/lib/paddock paddock

# Same version as `rust-version` in Cargo.toml.
FROM rust:1.95.0-bookworm AS build
WORKDIR /src
COPY . .
# Shown by /api/v1/self/info.
ARG COMMIT=unknown
RUN PADDOCK_COMMIT="$COMMIT" cargo build --release --locked --package paddock

# The binary is linked against glibc: copy exactly the libraries that it needs, from the Debian release
# that it was built on. No shell, no package manager, no other programs.
RUN set -eu; \
    install -D target/release/paddock /image/usr/bin/paddock; \
    ldd target/release/paddock | grep -o '/[^ ]*' | while read -r library; do \
        install -D "$library" "/image$library"; \
    done; \
    install -D -m 644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt; \
    echo 'paddock:x:10001:10001::/var/lib/paddock:/nonexistent' > /image/etc/passwd; \
    echo 'paddock:x:10001:' > /image/etc/group; \
    echo 'hosts: files dns' > /image/etc/nsswitch.conf; \
    mkdir -p /state/paddock

FROM scratch
COPY --from=build /image/ /
COPY --from=build --chown=10001:10001 /state/ /var/lib/
ENV PATH=/usr/bin \
    PADDOCK_LISTEN=0.0.0.0:8001 \
    PADDOCK_DATA_DIR=/var/lib/paddock
USER 10001:10001
WORKDIR /var/lib/paddock
VOLUME /var/lib/paddock
EXPOSE 8001
ENTRYPOINT ["paddock"]
CMD ["server"]
