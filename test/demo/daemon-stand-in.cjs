// Stands in for a daemon: says that it serves and is ready, and does nothing.
const { createServer } = require('node:http');

const server = createServer((_request, response) => response.end('ok\n'));
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  process.stderr.write(`${JSON.stringify({ msg: 'serving', port, probePort: port })}\n`);
});
