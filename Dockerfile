FROM rust:1-slim AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked

# With a shell, cat, grep and awk: Testcontainers looks for open ports with them, inside the container.
FROM debian:stable-slim
COPY --from=build /src/target/release/tavola /usr/local/bin/tavola
COPY docker/entrypoint /usr/local/bin/docker-entrypoint
# The names that tools start in Azurite's image, of the services that are served.
RUN ln -s tavola /usr/local/bin/azurite && ln -s tavola /usr/local/bin/azurite-queue \
    && ln -s tavola /usr/local/bin/azurite-table
VOLUME /data
EXPOSE 10001 10002 9102
# The container's own address is not loopback: give accounts of your own before you publish the port.
ENV TAVOLA_LOCATION=/data TAVOLA_HOST=0.0.0.0 TAVOLA_ADMIN_PORT=9102
HEALTHCHECK --interval=10s --timeout=3s CMD ["tavola", "health"]
ENTRYPOINT ["docker-entrypoint"]
CMD ["serve"]
