// One port, behind it the ports that the main thread names. A thread of its own: bytes and ends of connections pass at once, as
// through a kernel, however busy the tests are.
const { connect, createServer } = require('node:net');
const { parentPort } = require('node:worker_threads');

let targets = [];
let turn = 0;
const refused = new Int32Array(new SharedArrayBuffer(4));

function lead(socket, [port, ...others]) {
  if (port === undefined || socket.destroyed) return socket.destroy();
  const behind = connect(port, '127.0.0.1').on('error', () => undefined);
  const onRefused = () => {
    Atomics.add(refused, 0, 1);
    lead(socket, others);
  };
  behind.once('error', onRefused);
  behind.once('connect', () => {
    behind.off('error', onRefused);
    behind.once('close', () => socket.destroy());
    socket.once('close', () => behind.destroy());
    socket.pipe(behind).pipe(socket);
  });
}

const server = createServer((socket) => {
  socket.on('error', () => undefined);
  const first = turn++ % Math.max(1, targets.length);
  lead(socket, [...targets.slice(first), ...targets.slice(0, first)]);
});
server.listen(0, '127.0.0.1', () => parentPort.postMessage({ port: server.address().port, refused }));
parentPort.on('message', (ports) => {
  targets = ports;
});
