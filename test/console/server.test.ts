import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { type IncomingHttpHeaders, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { KINDS } from '../../console/server/kinds.ts';
import { kubeconfig } from '../../sandbox/cluster/identities.ts';
import { startApi } from '../kube/api-fixture.ts';
import { statusOf } from '../scheduler-plugin/extender-fixture.ts';
import { fromSource, startDaemonProcess } from '../support/daemon-process.ts';
import { eventually } from '../support/eventually.ts';
import { tempDirectories, writeTree } from '../support/files.ts';
import { type ConsoleUnderTest, consoleOf, waitingPod } from './fixture.ts';
import { type Listener, listen } from './support.ts';

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

function ask(port: number, path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (response) => {
      const { statusCode = 0, headers } = response;
      text(response).then((body) => resolve({ status: statusCode, headers, body }), reject);
    });
    call.once('error', reject).end();
  });
}

describe('the console’s server', () => {
  let under: ConsoleUnderTest;
  before(async () => {
    under = await consoleOf({ nodes: { n1: statusOf(), n2: statusOf({ reserved: '0-15' }) } });
  });
  after(() => under.stop());
  it('serves the page with a policy that allows only its own content and no evaluation', async () => {
    const files = [
      ['/', 'text/html'],
      ['/console.js', 'text/javascript'],
      ['/console.css', 'text/css'],
      ['/icon.svg', 'image/svg+xml'],
    ] as const;
    for (const [path, type] of files) {
      const { status, headers, body } = await ask(under.port, path);
      assert.equal(status, 200);
      assert.ok(headers['content-type']?.startsWith(type), path);
      assert.ok(body.length > 100);
      const policy = String(headers['content-security-policy']);
      assert.match(policy, /^default-src 'none'; script-src 'self';/);
      assert.doesNotMatch(policy, /unsafe|\*|http/);
      assert.match(policy, /frame-ancestors 'none'/);
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['access-control-allow-origin'], undefined);
    }
  });

  it('names no other host in the page', async () => {
    assert.doesNotMatch((await ask(under.port, '/')).body, /https?:/);
  });

  for (const method of ['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    it(`refuses ${method} on every path`, async () => {
      for (const path of ['/', '/events', '/explain?pod=a/b', '/filter']) {
        const { status, headers } = await ask(under.port, path, {}, method);
        assert.equal(status, 405);
        assert.equal(headers.allow, 'GET');
      }
    });
  }

  const foreign: [string, Record<string, string>, number][] = [
    ['a name that resolves to this host by DNS rebinding', { host: 'evil.example:8083' }, 421],
    ['a page of another site', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }, 403],
    ['a page of another port', { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' }, 403],
    ['a link on another site', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }, 200],
    ['the page itself', { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' }, 200],
    ['kubectl port-forward on another port', { host: 'localhost:31337' }, 200],
  ];
  for (const [who, headers, expected] of foreign) {
    it(`answers ${who} with ${expected}`, async () => {
      const isLink = headers['sec-fetch-mode'] === 'navigate';
      if (isLink) assert.equal((await ask(under.port, '/events', headers)).status, 403, 'no stream for a link');
      assert.equal((await ask(under.port, '/', headers)).status, expected);
      if (expected !== 200) assert.equal((await ask(under.port, '/events', headers)).status, expected);
    });
  }

  for (const path of [
    '/../config.ts',
    '/%2e%2e/daemon.ts',
    '/index.html',
    '/__proto__',
    '/constructor',
    '/console.js/',
    '//evil.example/',
  ]) {
    it(`has no ${path}`, async () => {
      const { status, body } = await ask(under.port, path);
      assert.equal(status, 404);
      assert.match(body, /not found; paths: \//);
    });
  }

  it('explains a pod node by node, with the shortage', async () => {
    const pod = waitingPod('vm', 10);
    under.see(pod);
    const { status, body } = await ask(under.port, '/explain?pod=east/virt-launcher-vm-x2x4z');
    assert.equal(status, 200);
    const found = JSON.parse(body) as { groups: { fits: boolean; nodes: number; kind: string }[]; nodes: string[][] };
    const groups = found.groups.map(({ fits, nodes, kind }) => `${fits} ${nodes} ${kind}`);
    assert.deepEqual(groups, ['true 1 fits', 'false 1 too-few-whole-cores']);
    const nodes = found.nodes.map(([node, group]) => `${node} ${group}`);
    assert.deepEqual(nodes, ['n1 0', 'n2 1']);
    assert.match(found.nodes[0]?.[2] ?? '', /^score \d+: CPUs .* on NUMA node/);
  });

  for (const [pod, expected] of [
    ['', 'pod=: expected namespace/name'],
    ['east', 'pod=east: expected namespace/name'],
    ['East/vm', 'expected namespace/name'],
    ['east/vm%26x=1', 'expected namespace/name'],
    ['east/vm/log', 'expected namespace/name'],
    ['..%2f..%2fsecrets/x', 'expected namespace/name'],
  ]) {
    it(`refuses to explain “${pod}”`, async () => {
      const { status, body } = await ask(under.port, `/explain?pod=${pod}`);
      assert.equal(status, 400);
      assert.ok(body.includes(expected!), body);
    });
  }

  it('explains one pod at a time and asks others to wait', async () => {
    const events = new EventEmitter();
    const requested = once(events, 'requested');
    const busy = await consoleOf({
      async ask() {
        events.emit('requested');
        await once(events, 'answer');
        return { answer: { nodes: [] } };
      },
    });
    const first = ask(busy.port, '/explain?pod=east/vm');
    await requested;
    const second = await ask(busy.port, '/explain?pod=east/vm');
    assert.equal(second.status, 503);
    assert.equal(second.headers['retry-after'], '1');
    events.emit('answer');
    assert.equal((await first).status, 200);
    const third = ask(busy.port, '/explain?pod=east/vm');
    await once(events, 'requested');
    events.emit('answer');
    assert.equal((await third).status, 200);
    await busy.stop();
  });

  for (const [title, answer, expected] of [
    [
      'gives the reason if the extender is not available',
      { why: 'you may not' },
      /^Cannot reach the extender: you may/,
    ],
    ['accepts no other answer', { answer: { nodes: 'all' } }, /^Cannot reach the extender: the answer is not/],
  ] as const) {
    it(title, async () => {
      const without = await consoleOf({ ask: async () => answer });
      const { status, body } = await ask(without.port, '/explain?pod=east/vm');
      await without.stop();
      assert.equal(status, 502);
      assert.match(body, expected);
    });
  }

  it('keeps 16 pages up to date, and refuses the next with one line', async () => {
    const listeners: Listener[] = [];
    for (let at = 0; at < 16; at++) listeners.push(await listen(`${under.url}/events`));
    const { status, body } = await ask(under.port, '/events');
    assert.equal(status, 503);
    assert.equal(body, '16 pages are already open; close one\n');
    for (const listener of listeners) listener.close();
  });

  it('has one open watch of each kind for any number of pages, and none after it has stopped', async () => {
    const other = await consoleOf({});
    const listeners = [await listen(`${other.url}/events`), await listen(`${other.url}/events`)];
    await Promise.all(listeners.map((listener) => listener.until(({ event }) => event === 'ready')));
    const open = other.api.watches;
    await other.stop();
    assert.deepEqual([open, other.api.watches], [Object.keys(KINDS).length, 0]);
    await Promise.all(listeners.map(({ ended }) => ended));
  });
});

describe('the console as a process', function () {
  this.timeout(300_000);
  const temp = tempDirectories();

  it('serves the API server’s data, names the command for what needs permissions, and exits with 0 on SIGTERM', async () => {
    const api = await startApi();
    const folder = temp();
    writeTree(folder, { kubeconfig: kubeconfig({ server: api.server.url, ca: api.server.ca, token: 'admin-token' }) });
    const flags = ['--address', '127.0.0.1:0', '--probe-host', '127.0.0.1', '--probe-port', '0'];
    const program = [...fromSource('console/server/main.ts'), ...flags, '--kubeconfig', join(folder, 'kubeconfig')];
    const daemon = startDaemonProcess(program);
    await eventually(() => daemon.line('serving') !== undefined, 'it serves');
    const port = Number(daemon.line('serving')?.['port']);
    await eventually(async () => (await daemon.probe('/readyz')).status === 200, 'ready');
    const { status, body } = await ask(port, '/explain?pod=east/vm');
    assert.equal(status, 502);
    assert.match(body, /this console runs in the cluster with read permissions only.*`plumbline explain`/);
    assert.equal(await daemon.stop(), 0);
    await api.stop();
  });
});
