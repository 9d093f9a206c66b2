import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { collect } from '../../cli/bug-report/collect.ts';
import { Redaction, redactedArguments } from '../../cli/bug-report/redact.ts';
import { tarArchive } from '../../cli/bug-report/run.ts';
import type { ClusterAccess } from '../../cli/support/cluster.ts';
import { KubeError } from '../../kube/client.ts';
import { NOW, STATE_TABLE } from '../diagnosis/state-table-fixture.ts';
import { tempDirectories } from '../support/files.ts';
import { useCluster } from './cluster-fixture.ts';
import { createObjectsApi, type Objects } from './objects-api-stand-in.ts';

const LOG =
  '2026-11-01T10:00:00Z {"level":30,"namespace":"tenants","pod":"virt-launcher-fw-abcde","msg":"placed on n1"}\n' +
  '{"pod":"gone-tenant/secret-router","msg":"Authorization: Bearer abc.def","password":"hunter2"}\n' +
  '-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n';

/** A cluster with a tenant, and a pod of Plumbline whose log is LOG. */
function clusterOf(more: Objects = {}, log: string | KubeError = LOG): ClusterAccess {
  const { objects } = STATE_TABLE.find(({ title }) => title === 'runs as promised')!;
  const agent = {
    metadata: { name: 'plumbline-agent-1', namespace: 'plumbline-system', annotations: { note: 'site-secret' } },
    spec: {
      containers: [
        { name: 'node-agent', image: 'x/plumbline-node-agent:0.1.0', env: [{ name: 'TOKEN', value: 'env-secret' }] },
      ],
    },
  };
  const client = createObjectsApi({
    ...objects,
    '/api/v1/pods': [...(objects['/api/v1/pods'] ?? []), agent],
    '/api/v1/namespaces': [{ metadata: { name: 'tenants' } }, { metadata: { name: 'kube-system' } }],
    '/api/v1/secrets': [
      { metadata: { name: 'plumbline-webhook-tls', namespace: 'plumbline-system' }, data: { 'tls.key': 'key-secret' } },
    ],
    '/api/v1/events': [
      {
        metadata: { name: 'e1', namespace: 'tenants' },
        involvedObject: { kind: 'Pod', namespace: 'tenants', name: 'virt-launcher-fw-abcde' },
        source: { component: 'plumbline-scheduler-plugin' },
        reason: 'PredictionDiffers',
        message: 'tenants/virt-launcher-fw-abcde on n1',
      },
      {
        metadata: { name: 'e2', namespace: 'tenants' },
        involvedObject: { kind: 'Pod', namespace: 'tenants', name: 'x' },
        source: { component: 'application' },
        message: 'event-secret',
      },
    ],
    ...more,
  });
  const watch = async (path: string) => {
    if (typeof log !== 'string') throw log;
    assert.equal(path, '/api/v1/namespaces/plumbline-system/pods/plumbline-agent-1/log');
    return (async function* () {
      yield Buffer.from(log);
    })();
  };
  return { client: { ...client, watch }, namespace: 'default', config: undefined } as unknown as ClusterAccess;
}

const textOf = ({ files }: Awaited<ReturnType<typeof collect>>) => files.map(({ content }) => content).join('\n');

describe('plumbline bug-report', () => {
  const temp = tempDirectories();

  it('has versions, findings, reports, nodes, Events, pods and logs', async () => {
    const { files, missing } = await collect(clusterOf(), NOW);
    const data = ['versions', 'doctor', 'reports', 'nodes', 'events', 'pods'].map((name) => `${name}.json`);
    assert.equal(files.map(({ name }) => name).join(), [...data, 'logs/plumbline-agent-1.node-agent.log'].join());
    assert.deepEqual(missing, []);
    for (const { name, content } of files) if (name.endsWith('.json')) JSON.parse(content);
  });

  it('has no secret and no name of a tenant, and the same word for the same name', async () => {
    const collected = await collect(clusterOf(), NOW);
    const text = textOf(collected);
    const SECRET = [
      ...['site-secret', 'env-secret', 'key-secret', 'event-secret', 'hunter2', 'abc.def', 'MIIE'],
      ...['tenants', 'virt-launcher', 'abcde', 'gone-tenant', 'secret-router'],
    ];
    assert.equal(SECRET.filter((one) => text.includes(one)).join(), '');
    assert.doesNotMatch(text, /\bfw\b/);
    const [word] = /pod-\d+/.exec(collected.files.find(({ name }) => name === 'events.json')?.content ?? '') ?? [];
    assert.ok(word !== undefined && collected.files.at(-1)?.content.includes(word));
    for (const one of ['n1', 'plumbline-agent-1', 'node-agent', 'plumbline-system']) assert.ok(text.includes(one), one);
  });

  for (const [form, secret] of [
    ['--token hunter3', 'hunter3'],
    ['--password hunter3', 'hunter3'],
    ['--db-password=hunter3', 'hunter3'],
    ['Authorization: Basic aHVudGVyMw==', 'aHVudGVyMw'],
    ['AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI', 'wJalrXUtnFEMI'],
    ['API_KEY=hunter3', 'hunter3'],
    ['asked by jane.doe@example.org', 'jane.doe'],
    ['https://jane:hunter3@example.org', 'hunter3'],
  ] as const) {
    it(`has not what ${form} hides in a log`, async () => {
      const text = textOf(await collect(clusterOf({}, `a line with ${form} in it`), NOW));
      assert.ok(!text.includes(secret), text.slice(-300));
    });
  }

  it('has the arguments of Plumbline alone', () => {
    const given = ['--port=10270', '--config', '/etc/x.yaml', '--token', 'hunter3', '--custom=hunter3', 'hunter3'];
    assert.deepEqual(redactedArguments(given), [
      ...['--port=10270', '--config', '/etc/x.yaml'],
      ...['--token=<removed>', '<removed>', '--custom=<removed>', '<removed>'],
    ]);
  });

  it('has pods whose containers were never created', async () => {
    const pod = {
      metadata: { name: 'plumbline-webhook-1', namespace: 'plumbline-system' },
      spec: { containers: [{ name: 'webhook' }] },
      status: { phase: 'Pending' },
    };
    const { files } = await collect(clusterOf({ '/api/v1/pods': [pod] }, ''), NOW);
    assert.match(files.find(({ name }) => name === 'pods.json')?.content ?? '', /plumbline-webhook-1/);
  });

  it('says what is missing and why, and has the rest', async () => {
    const { files, missing } = await collect(clusterOf({}, new KubeError(403, 'Forbidden', 'no')), NOW);
    assert.deepEqual(missing, ['logs/plumbline-agent-1.node-agent.log: not allowed, or not there']);
    assert.equal(files.length, 6);
  });

  const ADDRESS_WORDS = 'address-1:8443 address-2 address-3 address-1';
  const NO_ADDRESSES = '0000:3b:00.1 10:11:12 1.36.3 0:1:2:3:4:5 127.0.0.1';
  for (const [title, hidden, text, expected] of [
    ['a name with its boundaries', ['fw'], 'fw fwx x-fw ns/fw "fw" fw.', 'vm-1 fwx x-fw ns/vm-1 "vm-1" vm-1.'],
    ['a name in a host name', ['fw'], 'fw.svc.local', 'vm-1.svc.local'],
    ['a node’s name stays', ['n1'], 'n1', 'n1'],
    ['a token', [], 'token=eyJhbGciOiJ.eyJzdWIiOi.sig x', 'token=<token removed> x'],
    ['a name in another name', ['firewall', 'fw'], 'dv-firewall-boot fw-boot', 'dv-vm-1-boot fw-boot'],
    ['a name of several parts in another name', ['edge-router'], 'edge-router-7 edge-7', 'vm-1-7 edge-7'],
    ['addresses by words', [], '10.0.0.7:8443 fd00::7 52:54:00:ab:cd:ef 10.0.0.7', ADDRESS_WORDS],
    ['no PCI address, time, version, CPU mask or loopback address', [], NO_ADDRESSES, NO_ADDRESSES],
    ['credentials in a URL', [], 'http://user:pw@host', 'http://<removed>@host'],
  ] as const) {
    it(`replaces ${title}`, () => {
      const redaction = new Redaction(new Set(['n1']));
      for (const name of hidden) redaction.hide('vm', name);
      assert.equal(redaction.text(text), expected);
    });
  }

  it('writes an archive that tar reads', () => {
    const directory = temp();
    const files = [
      { name: 'a.json', content: '{}\n' },
      { name: 'logs/b.log', content: 'ä'.repeat(512) },
      { name: 'empty', content: '' },
    ];
    writeFileSync(join(directory, 'a.tar.gz'), tarArchive('report', files, 1_800_000_000));
    execFileSync('tar', ['-xzf', 'a.tar.gz'], { cwd: directory });
    for (const { name, content } of files) assert.equal(readFileSync(join(directory, 'report', name), 'utf8'), content);
  });

  describe('as a command', function () {
    this.timeout(120_000);
    const cluster = useCluster((made) => made.node('worker-1'));
    let directory: string;
    before(() => {
      directory = temp();
    });
    const report = (...args: string[]) => cluster.run('bug-report', ...args);

    it('prints the list before it writes a file that only its owner can read', async () => {
      const path = join(directory, 'report.tar.gz');
      const { status, stdout, stderr } = await report('-f', path);
      assert.equal(status, 0, stderr);
      assert.match(
        stdout,
        /^FILE +SIZE\nversions\.json +\d+ B\n[\s\S]*\n.*report\.tar\.gz: \d files, .*look through it/,
      );
      assert.equal(statSync(path).mode & 0o777, 0o600);
      const listed = execFileSync('tar', ['-tzf', path], { encoding: 'utf8' });
      for (const [, name = ''] of stdout.matchAll(/^(\S+\.json) /gm)) assert.ok(listed.includes(`/${name}\n`), name);
    });

    it('never overwrites a file', async () => {
      const path = join(directory, 'mine.tar.gz');
      writeFileSync(path, 'mine');
      const { status, stderr } = await report('-f', path);
      assert.equal(status, 2);
      assert.match(stderr, /mine\.tar\.gz exists and is not overwritten; choose another name with -f/);
      assert.equal(readFileSync(path, 'utf8'), 'mine');
    });

    it('writes nothing with --dry-run', async () => {
      const before = readdirSync(directory);
      const { status, stdout } = await report('--dry-run', '-f', join(directory, 'none.tar.gz'));
      assert.equal(status, 0);
      assert.match(stdout, /^FILE +SIZE\n/);
      assert.deepEqual(readdirSync(directory), before);
    });
  });
});
