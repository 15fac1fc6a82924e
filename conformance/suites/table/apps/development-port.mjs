// Programs that know only `UseDevelopmentStorage=true` dial port 10002. When the server listens elsewhere, this leads
// their connections to it; everything that goes over the wire stays as they made it.
import net from "node:net";

const DEVELOPMENT_PORT = 10002;
const target = Number(new URL(process.env.TAVOLA_ENDPOINT).port);
const connect = net.Socket.prototype.connect;

net.Socket.prototype.connect = function (...given) {
  const options = Array.isArray(given[0]) ? given[0][0] : given[0];
  if (typeof options === "object" && Number(options?.port) === DEVELOPMENT_PORT) options.port = target;
  return connect.apply(this, given);
};
