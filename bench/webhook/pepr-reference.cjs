/*
 * The change of express-reference.ts as a module of Pepr (https://pepr.dev), a likely alternative.
 * PLUMBLINE_PEPR names a directory with the npm package pepr; it depends on hundreds of packages, so it is not a
 * dependency here. PLUMBLINE_BENCH_TLS contains certificate and key as JSON. Prints its port when it serves.
 *
 * Pepr keeps a store in the cluster and only serves after it has read it; a server on loopback replaces that.
 */
const { mkdtempSync, writeFileSync } = require('node:fs');
const { createServer, get } = require('node:https');
const { createRequire } = require('node:module');
const { tmpdir } = require('node:os');
const { join } = require('node:path');

const directory = mkdtempSync(join(tmpdir(), 'plumbline-pepr-'));
const file = (name, content) => {
  writeFileSync(join(directory, name), content);
  return join(directory, name);
};
const { cert, key } = JSON.parse(process.env.PLUMBLINE_BENCH_TLS);
const token = 'bench';
const port = 20_000 + (process.pid % 20_000);
Object.assign(process.env, {
  SSL_CERT_PATH: file('tls.crt', cert),
  SSL_KEY_PATH: file('tls.key', key),
  // Its name before and since version 1.1.
  PEPR_API_TOKEN: token,
  PEPR_API_PATH: token,
  LOG_LEVEL: 'warn',
  // Its client does not accept the certificate of the server on loopback, whatever the kubeconfig says.
  NODE_TLS_REJECT_UNAUTHORIZED: '0',
});

const store = {
  apiVersion: 'pepr.dev/v1',
  kind: 'PeprStore',
  metadata: { name: 'pepr-bench-store', namespace: 'pepr-system' },
  data: {},
};
const cluster = createServer({ cert, key }, (request, response) => {
  response.setHeader('content-type', 'application/json');
  if (request.url.includes('watch=true')) response.write(`${JSON.stringify({ type: 'ADDED', object: store })}\n`);
  else response.end(JSON.stringify(store));
});

cluster.listen(0, '127.0.0.1', () => {
  process.env.KUBECONFIG = file(
    'kubeconfig',
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'bench',
      contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
      clusters: [
        {
          name: 'bench',
          cluster: { server: `https://127.0.0.1:${cluster.address().port}`, 'insecure-skip-tls-verify': true },
        },
      ],
      users: [{ name: 'bench', user: {} }],
    }),
  );
  const { Capability, PeprModule, a } = createRequire(join(process.env.PLUMBLINE_PEPR, 'x.js'))('pepr');
  const bench = new Capability({ name: 'bench', description: 'whole cores', namespaces: [] });
  bench
    .When(a.Pod)
    .IsCreated()
    .Mutate((pod) => {
      const { requests, limits } = pod.Raw.spec.containers[0].resources;
      const cpus = Number(limits.cpu);
      requests.cpu = limits.cpu = String(cpus + (cpus % 2));
    });
  const config = {
    description: 'bench',
    pepr: { name: 'bench', uuid: 'bench', onError: 'reject', alwaysIgnore: { namespaces: [], labels: [] } },
  };
  const pepr = new PeprModule(config, [bench.exports ?? bench], { deferStart: true });
  pepr.start(port);
  waitForAnswer();
});

/** Pepr adds its endpoints some seconds after it starts to listen. */
function waitForAnswer() {
  const request = get({ port, host: '127.0.0.1', path: '/healthz', rejectUnauthorized: false }, (response) => {
    response.resume();
    if (response.statusCode === 200) process.stdout.write(`${JSON.stringify({ port, path: `/mutate/${token}` })}\n`);
    else setTimeout(waitForAnswer, 1000);
  });
  request.on('error', () => setTimeout(waitForAnswer, 1000));
}
