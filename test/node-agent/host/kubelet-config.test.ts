import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { mock } from 'node:test';
import {
  documentOf,
  KubeletConfigError,
  kubeletConfigOf,
  readSettings,
} from '../../../node-agent/host/kubelet-config.ts';
import { KubeletConfigReader } from '../../../node-agent/host/kubelet-config-reader.ts';
import { readConfigz, servingOf } from '../../../node-agent/host/kubelet-configz.ts';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { recordingLogger, tempDirectories, writeTree } from '../support.ts';

const HEAD = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const KUBECONFIG = 'apiVersion: v1\nkind: Config\nclusters: []\n';

/** A single file without drop-ins and flags, in the steps of the agent's reader. */
function parseKubeletConfig(file: string, text: string) {
  try {
    return kubeletConfigOf(file, documentOf(text));
  } catch (error) {
    if (error instanceof KubeletConfigError) throw error;
    throw new KubeletConfigError(file, (error as Error).message, { cause: error });
  }
}

describe('kubelet configuration', () => {
  const temp = tempDirectories();

  it('sums the reserved memory of a NUMA node over all its entries, in bytes', () => {
    const text = `${HEAD}reservedMemory:
- {numaNode: 0, limits: {memory: 1Gi}}
- {numaNode: 1, limits: {memory: 500M, hugepages-2Mi: 4Mi}}
- {numaNode: 0, limits: {hugepages-1Gi: 1Gi}}
`;
    const { reservedMemory } = parseKubeletConfig('f', text);
    assert.deepEqual(Object.fromEntries(reservedMemory), {
      0: { memory: 2 ** 30, 'hugepages-1Gi': 2 ** 30 },
      1: { memory: 500_000_000, 'hugepages-2Mi': 2 ** 22 },
    });
    assert.equal(parseKubeletConfig('f', HEAD).reservedMemory.size, 0);
  });

  const wrong: [string, string, RegExp][] = [
    ['a kubeconfig', KUBECONFIG, /^f: a kubeconfig, not a KubeletConfiguration$/],
    ['another kind', 'kind: Other', /^f: not a KubeletConfiguration: /],
    ['no apiVersion', 'kind: KubeletConfiguration\n', /^f: not a KubeletConfiguration: /],
    ['an empty first document', `---\n---\n${HEAD}`, /^f: not a KubeletConfiguration: /],
    ['broken YAML', `${HEAD}cpuManagerPolicy: [`, /^f: .*at line 3/],
    ['braces that are not JSON', '{kind: KubeletConfiguration}', /^f: .*JSON/],
    ['binary data', `${HEAD}\0\ufffd`, /^f: not text/],
    ['reserved CPUs that are not a CPU list', `${HEAD}reservedSystemCPUs: x`, /^f: reservedSystemCPUs: /],
    ['a wrong amount', `${HEAD}reservedMemory: [{numaNode: 0, limits: {memory: x}}]`, /^f: reservedMemory: /],
    ['a wrong type', `${HEAD}cpuManagerPolicyOptions: {full-pcpus-only: true}`, /^f: .*cpuManagerPolicyOptions/],
  ];
  for (const [what, text, message] of wrong) {
    const error = { name: 'KubeletConfigError', code: 'kubelet-config', message };
    it(`refuses ${what}`, () => assert.throws(() => parseKubeletConfig('f', text), error));
  }

  it('ends with its first document, as for the kubelet', () => {
    const config = parseKubeletConfig('f', `${HEAD}maxPods: 5\n---\ntopologyManagerPolicy: [none\n`);
    assert.equal(config.maxPods, 5);
  });

  it('has between 1 and 10000 pods, or the kubelet’s default of 110', () => {
    const maxPodsOf = (text: string) => parseKubeletConfig('f', `${HEAD}${text}\n`)?.maxPods;
    const texts = ['', 'maxPods: 0', 'maxPods: -5', 'maxPods: null', 'maxPods: 1', 'maxPods: 10000', 'maxPods: 10001'];
    assert.deepEqual(texts.map(maxPodsOf), [110, 110, 110, 110, 1, 10_000, 10_000]);
  });

  it('refuses a directory of thousands of files', async () => {
    const root = temp();
    writeTree(root, { config: HEAD });
    const dropIns = Array.from({ length: 300 }, (_, i) => [`conf.d/${i}.conf`, `${HEAD}maxPods: 1`]);
    writeTree(root, Object.fromEntries(dropIns));
    const all = { config: '/config', configDir: '/conf.d', root };
    await assert.rejects(readSettings(all), { message: '/conf.d: more than 256 drop-ins' });
  });

  it('skips a kubeconfig in its place, and says so once', async () => {
    const root = temp();
    writeTree(root, { 'kubelet.conf': KUBECONFIG });
    const { log, lines } = recordingLogger();
    const { read } = new KubeletConfigReader({ kubeletDir: root, config: join(root, 'kubelet.conf') }, log);
    const { config, problems } = await read();
    assert.equal(config, undefined);
    assert.match(problems.join(), /kubelet.conf: a kubeconfig, not a KubeletConfiguration; allow nodes\/configz/);
    const before = lines.length;
    await read();
    assert.equal(lines.length, before);
    assert.ok(lines.some(({ reason }) => /a kubeconfig, not a KubeletConfiguration/.test(String(reason))));
  });
});

describe('the configuration of a running kubelet', () => {
  const temp = tempDirectories();
  const authority = createCertificateAuthority('kubelet-ca');
  const serving = authority.issue(['worker-1']);
  let server: Server;
  let kubeletDir: string;
  let endpoint: string;
  let requests: (string | undefined)[];
  let answer: { status: number; body: string; ends: boolean };

  before(async () => {
    server = createServer({ cert: serving.cert, key: serving.key }, (request, response) => {
      requests.push(request.headers.authorization);
      if (answer.status === 0) return;
      response.writeHead(answer.status).write(answer.body);
      if (answer.ends) response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    endpoint = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => server.close());
  afterEach(() => mock.reset());
  beforeEach(() => {
    kubeletDir = temp();
    requests = [];
    const kubeletconfig = { cpuManagerPolicy: 'static', maxPods: 250, reservedSystemCPUs: '0-1' };
    answer = { status: 200, body: JSON.stringify({ kubeletconfig }), ends: true };
  });
  const certificates = () => servingOf({}, join(kubeletDir, 'pki')).certificates;
  const read = () => readConfigz({ endpoint, certificates: certificates(), token: 'secret' });
  const refused = (message: RegExp) => assert.rejects(read(), { name: 'ConfigzError', message });

  for (const name of ['pki/kubelet.crt', 'pki/kubelet-server-current.pem']) {
    it(`is requested with the agent’s token from the kubelet with the certificate ${name}`, async () => {
      writeTree(kubeletDir, { [name]: `${serving.cert}${authority.cert}` });
      const { source, cpuManager, maxPods, reserved } = await read();
      assert.equal(source, `https://${endpoint}/configz`);
      assert.deepEqual([cpuManager.policy, maxPods, reserved?.toString()], ['static', 250, '0-1']);
      assert.deepEqual(requests, ['Bearer secret']);
    });
  }

  it('requires the kubelet’s own certificate before the token is sent', async () => {
    await refused(/no certificate to identify the kubelet in \S+pki\/kubelet-server-current.pem or \S+kubelet.crt/);
    writeTree(kubeletDir, { 'pki/kubelet.crt': authority.issue(['worker-1']).cert });
    await refused(/does not present the kubelet’s certificate/);
    assert.deepEqual(requests, []);
  });

  for (const [label, status] of [
    ['is silent', 0],
    ['stops in its answer', 200],
  ] as const) {
    it(`stops waiting for a server that ${label} after three seconds`, async () => {
      writeTree(kubeletDir, { 'pki/kubelet.crt': serving.cert });
      const limits: number[] = [];
      // The time in which the answer arrives.
      const soon = AbortSignal.timeout(200);
      mock.method(AbortSignal, 'timeout', (milliseconds: number) => {
        limits.push(milliseconds);
        return soon;
      });
      answer = { status, body: '{', ends: false };
      await refused(/: no answer in 3 s$/);
      assert.deepEqual(limits, [3000]);
    });
  }

  it('reports a denied request, an invalid answer and a missing server', async () => {
    writeTree(kubeletDir, { 'pki/kubelet.crt': serving.cert });
    answer = { ...answer, status: 403 };
    await refused(/answered 403/);
    answer = { ...answer, status: 200, body: '<html>' };
    await refused(/configz/);
    answer.body = JSON.stringify({ x: 'x'.repeat(8 * 1024 * 1024) });
    await refused(/the answer is too long/);
    const closed = { endpoint: '127.0.0.1:1', certificates: certificates(), token: 't' };
    await assert.rejects(readConfigz(closed), /ECONNREFUSED/);
  });

  it('takes precedence over files; each kubelet is asked once, and again with pauses after a refusal', async () => {
    const root = temp();
    writeTree(root, { 'config.yaml': `${HEAD}cpuManagerPolicy: none` });
    let now = 0;
    let calls = 0;
    let kubelet = 'first';
    let allowed = true;
    const configz = async () => {
      calls++;
      if (!allowed) throw new Error('the kubelet answered 403');
      return parseKubeletConfig('configz', `${HEAD}cpuManagerPolicy: static`)!;
    };
    const { log, lines } = recordingLogger();
    const sources = { configz, generation: () => kubelet, kubeletDir: root, config: join(root, 'config.yaml') };
    const { read } = new KubeletConfigReader(sources, log, () => now);
    const policy = async () => (await read()).config?.cpuManager.policy;
    assert.deepEqual(await Promise.all([policy(), policy()]), ['static', 'static']);
    now = 10_000;
    assert.equal(await policy(), 'static');
    assert.equal(calls, 1);

    kubelet = 'second';
    allowed = false;
    assert.equal(await policy(), 'none', 'what the first one said is nothing to go by');
    assert.ok(lines.some(({ reason }) => /answered 403/.test(String(reason))));
    await policy();
    assert.equal(calls, 2);
    allowed = true;
    now += 5;
    assert.equal(await policy(), 'static');
    assert.equal(calls, 3);
  });

  const pauses: [label: string, file: string | undefined, most: number][] = [
    ['a minute if a file has the settings', `${HEAD}cpuManagerPolicy: none`, 60],
    ['five seconds if nothing has them: a kubelet that takes minutes to start is known soon after', undefined, 5],
  ];
  for (const [label, file, most] of pauses) {
    it(`is asked again after at most ${label}`, async () => {
      const root = temp();
      if (file !== undefined) writeTree(root, { 'config.yaml': file });
      let now = 0;
      const askedAt: number[] = [];
      const configz = async () => {
        askedAt.push(now);
        throw new Error('no answer in 3 s');
      };
      const sources = { configz, generation: () => 'run', kubeletDir: root, config: join(root, 'config.yaml') };
      const { read } = new KubeletConfigReader(sources, recordingLogger().log, () => now);
      for (; now < 600; now++) await read();
      const longest = Math.max(...askedAt.slice(1).map((at, index) => at - (askedAt[index] ?? 0)));
      assert.ok(longest > most / 2 && longest <= most, `${longest} s`);
    });
  }
});

describe('where a kubelet serves', () => {
  const OWN = ['/pki/kubelet-server-current.pem', '/pki/kubelet.crt'];
  const rows: [label: string, settings: object, endpoint: string, certificates: string[]][] = [
    ['by default: at the loopback address, with its own certificates', {}, '127.0.0.1:10250', OWN],
    ['any address is the loopback address', { address: '0.0.0.0', port: 0, tlsCertFile: '' }, '127.0.0.1:10250', OWN],
    ['the same for IPv6', { address: '::', port: 10_255 }, '127.0.0.1:10255', OWN],
    ['an address and a certificate', { address: '192.0.2.1', tlsCertFile: '/a.crt' }, '192.0.2.1:10250', ['/a.crt']],
    ['an address of IPv6', { address: '2001:db8::1', port: 1 }, '[2001:db8::1]:1', OWN],
    ['no number as the port', { port: 'x' }, '127.0.0.1:10250', OWN],
  ];
  for (const [label, settings, endpoint, certificates] of rows) {
    it(label, () => assert.deepEqual(servingOf(settings, '/pki'), { endpoint, certificates }));
  }
});

describe('kubelet drop-ins', () => {
  const temp = tempDirectories();
  const find = async (root: string) => {
    const { source, settings } = await readSettings({ config: '/config.yaml', configDir: '/conf.d', root });
    return kubeletConfigOf(source, settings);
  };

  it('apply in the order of their names as merge patches; other files are ignored', async () => {
    const root = temp();
    writeTree(root, {
      'config.yaml': `${HEAD}cpuManagerPolicy: none\nmaxPods: 50\ncpuManagerPolicyOptions: {a: "1", full-pcpus-only: "true"}`,
      'conf.d/10-cpu.conf': `${HEAD}cpuManagerPolicy: static\ncpuManagerPolicyOptions: {a: null}`,
      'conf.d/20-pods.conf': `${HEAD}maxPods: 250`,
      'conf.d/05/pods.conf': `${HEAD}maxPods: 7\nreservedSystemCPUs: "0"`,
      'conf.d/05-pods.conf': `${HEAD}maxPods: 10\nreservedSystemCPUs: "1"`,
      'conf.d/30-not.yaml': `${HEAD}maxPods: 1`,
    });
    const { cpuManager, maxPods, reserved, source } = await find(root);
    assert.deepEqual([cpuManager, maxPods], [{ policy: 'static', options: { 'full-pcpus-only': 'true' } }, 250]);
    assert.equal(reserved?.toString(), '1', 'a directory comes where its own name is');
    assert.match(source, /config.yaml \+ .*05.pods.conf \+ .*05-pods.conf \+ .*10-cpu.conf \+ .*20-pods.conf$/);
  });

  const broken = { 'another kind': 'kind: Deployment', 'a field of the prototype': `${HEAD}__proto__: {maxPods: [}` };
  for (const [name, text] of Object.entries(broken)) {
    it(`make the configuration unusable if they stop the kubelet: ${name}`, async () => {
      const root = temp();
      writeTree(root, { 'config.yaml': HEAD, 'conf.d/10.conf': text });
      await assert.rejects(find(root), { name: 'KubeletConfigError', message: /^\/conf.d\/10.conf: / });
    });
  }
});
