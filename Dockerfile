FROM rust:1-slim AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked

FROM debian:stable-slim
COPY --from=build /src/target/release/tavola /usr/local/bin/tavola
VOLUME /data
EXPOSE 10002 9102
# The container's own address is not loopback: give accounts of your own before you publish the port.
ENV TAVOLA_LOCATION=/data TAVOLA_HOST=0.0.0.0 TAVOLA_ADMIN_PORT=9102
HEALTHCHECK --interval=10s --timeout=3s CMD ["tavola", "health"]
ENTRYPOINT ["tavola"]
CMD ["serve"]
