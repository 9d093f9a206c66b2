import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { createKubeClient } from '../../kube/api-transport.ts';
import { type KubeClient, KubeError } from '../../kube/client.ts';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { kubeconfig as kubeconfigText } from '../../sandbox/cluster/identities.ts';
import { assetDirectories, needs, noteVersion } from '../support/parts.ts';
import { freePort, type Program, startProgram } from '../support/processes.ts';
import { until } from '../support/until.ts';

/**
 * A real control plane on loopback: etcd and kube-apiserver, and on demand kube-scheduler and kube-controller-manager.
 * The binaries are expected where envtest keeps them; call `onControlPlane` first.
 */
export type ControlPlane = Awaited<ReturnType<typeof startControlPlane>>;

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [key: string]: unknown };
  readonly [key: string]: unknown;
}

export type SchedulerProgram = Program & { readonly port: number };

export interface SchedulerIdentity {
  readonly kubeconfig: string;
  readonly hostName?: string;
}

export interface ControlPlaneOptions {
  readonly apiServerArgs?: readonly string[];
  /** Users in addition to the administrator: lines of the token file, `token,name,uid,"group"`. */
  readonly tokens?: readonly string[];
  /** Puts the token of its service account into every pod, which needs kube-controller-manager. */
  readonly podTokens?: boolean;
}

export function podOf<Metadata extends object>(metadata: Metadata, spec: object = {}) {
  const containers = [{ name: 'compute', image: 'none' }];
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers, ...spec } };
}

export function namespaceOf(name: string): KubernetesObject {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
}

/** Called in a `describe`: skips its tests without a control plane, and gives them time for a slow one. */
export function onControlPlane(suite: { timeout(milliseconds: number): unknown }): void {
  needs('controlPlane');
  needs('kubectl');
  suite.timeout(300_000);
}

const ADMIN_TOKEN_BYTES = 16;
const START_SECONDS = 60;
const MEMORY_DISK = '/dev/shm';
/** Bytes: etcd allocates its log in segments of 64 MB. */
const ETCD_NEEDS = 1024 ** 3;

export async function startControlPlane(options: ControlPlaneOptions = {}) {
  const { apiServerArgs = [], tokens = [], podTokens = false } = options;
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-real-'));
  const authority = createCertificateAuthority('plumbline-real');
  const file = (name: string) => join(directory, name);
  const [etcdPort, peerPort, port] = await Promise.all([freePort(), freePort(), freePort()]);
  const programs: Program[] = [];
  const start = (name: string, args: readonly string[], hostName?: string) => {
    // A separate host name needs a separate namespace (unshare of util-linux, as root).
    const [command, before] =
      hostName === undefined
        ? [binary(name), []]
        : ['unshare', ['--uts', 'sh', '-c', 'hostname "$0" && exec "$@"', hostName, binary(name)]];
    const program = startProgram(name, command, [...before, ...args], file(`${name}.log`));
    programs.push(program);
    return program;
  };

  const data = await mkdtemp(join(await memoryOrDisk(), 'plumbline-etcd-'));
  const etcdUrl = `http://127.0.0.1:${etcdPort}`;
  const peerUrl = `http://127.0.0.1:${peerPort}`;
  start('etcd', [
    ...['--data-dir', data, '--listen-client-urls', etcdUrl, '--advertise-client-urls', etcdUrl],
    ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
    ...['--initial-cluster', `default=${peerUrl}`],
  ]);
  const adminToken = randomBytes(ADMIN_TOKEN_BYTES).toString('hex');
  const users = [`${adminToken},admin,admin,"system:masters"`, ...tokens];
  await writeFiles(file, authority.issue(['localhost', '127.0.0.1', '10.0.0.1', 'kubernetes.default.svc']), users);
  await writeFile(file('ca.crt'), authority.cert);
  const apiServerFlags = [
    ...['--etcd-servers', etcdUrl, '--secure-port', String(port), '--bind-address', '127.0.0.1'],
    ...['--tls-cert-file', file('tls.crt'), '--tls-private-key-file', file('tls.key')],
    ...['--service-account-key-file', file('sa.pub'), '--service-account-signing-key-file', file('sa.key')],
    ...['--service-account-issuer', 'https://kubernetes.default.svc', '--token-auth-file', file('tokens.csv')],
    // A configuration of authorizers replaces the list of the flag.
    ...(apiServerArgs.includes('--authorization-config') ? [] : ['--authorization-mode', 'Node,RBAC']),
    ...['--service-cluster-ip-range', '10.0.0.0/24', '--allow-privileged=true'],
    // Without kube-controller-manager there are no default service accounts, which this plugin requires.
    ...(podTokens ? [] : ['--disable-admission-plugins=ServiceAccount']),
    ...apiServerArgs,
  ];
  let schedulers = 0;
  let apiServer = start('kube-apiserver', apiServerFlags);

  const url = `https://127.0.0.1:${port}`;
  const kubeconfig = async (name: string, token: string): Promise<string> => {
    await writeFile(file(`${name}.kubeconfig`), kubeconfigText({ server: url, ca: authority.cert, token }));
    return file(`${name}.kubeconfig`);
  };
  const adminKubeconfig = await kubeconfig('admin', adminToken);
  const client = createKubeClient(kubeconfigAccess(adminKubeconfig), 'plumbline-test');
  const stop = async () => {
    await client.close();
    for (const program of programs.toReversed()) await program.stop();
    for (const path of [directory, data]) await rm(path, { recursive: true, force: true });
  };
  try {
    await ready(client, apiServer);
  } catch (error) {
    await stop();
    throw error;
  }

  const serviceAccountToken = async (namespace: string, name: string, pod?: string): Promise<string> => {
    const boundObjectRef = pod && {
      apiVersion: 'v1',
      kind: 'Pod',
      name: pod,
      uid: await uidOf(client, namespace, pod),
    };
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { boundObjectRef } };
    const { status } = (await client.create(path, body)) as { status: { token: string } };
    return status.token;
  };

  const configured = (configuration: Readonly<Record<string, unknown>>, as: SchedulerIdentity | undefined) => ({
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    ...configuration,
    ...(as === undefined && { leaderElection: { leaderElect: false } }),
    clientConnection: {
      qps: 1000,
      burst: 2000,
      ...(configuration['clientConnection'] as object),
      kubeconfig: as?.kubeconfig ?? adminKubeconfig,
    },
  });

  const version = execFileSync(binary('kube-apiserver'), ['--version'], { encoding: 'utf8' }).trim();
  noteVersion('kube-apiserver', version.replace('Kubernetes ', ''));
  return {
    /** `Kubernetes v1.36.2` */
    version,
    url,
    ca: authority.cert,
    directory,
    client,
    adminKubeconfig,
    kubeconfig,
    get apiServer() {
      return apiServer;
    },
    async restartApiServer() {
      apiServer = start('kube-apiserver', apiServerFlags);
      await ready(client, apiServer);
    },
    /** Compacts all older versions, so that watches from one get 410. */
    compact: () => compact(etcdUrl),
    stop,
    /** @param pod in whose volume the token would be */
    serviceAccountToken,
    /** The file of a kubeconfig with such a token. @param name of the file */
    accountKubeconfig: async (name: string, ...account: Parameters<typeof serviceAccountToken>) =>
      kubeconfig(name, await serviceAccountToken(...account)),
    /** Creates objects of any kind, in order; an existing one stays unchanged. Kinds are found by discovery. */
    create: (...objects: readonly KubernetesObject[]) => createObjects(client, objects),
    /**
     * @param configuration a KubeSchedulerConfiguration, without the connection to the API server
     * @param flags in addition to those that every test needs
     */
    async startScheduler(
      configuration: Readonly<Record<string, unknown>>,
      as?: SchedulerIdentity,
      flags: readonly string[] = [],
    ): Promise<SchedulerProgram> {
      // Each has its own file, because it is read some time after the start.
      const config = file(`scheduler-${++schedulers}.yaml`);
      await writeFile(config, stringify(configured(configuration, as)));
      const own = ['--authentication-kubeconfig', adminKubeconfig, '--authorization-kubeconfig', adminKubeconfig];
      const port = await freePort();
      const args = ['--config', config, '--bind-address', '127.0.0.1', '--secure-port', `${port}`, ...own, ...flags];
      return Object.assign(start('kube-scheduler', args, as?.hostName), { port });
    },
    async startControllers(controllers: readonly string[] = ['*']) {
      return start('kube-controller-manager', [
        ...['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig'].map(
          (name) => `--${name}=${adminKubeconfig}`,
        ),
        ...['--service-account-private-key-file', file('sa.key'), '--root-ca-file', file('ca.crt')],
        ...['--bind-address', '127.0.0.1', '--secure-port', String(await freePort())],
        ...['--leader-elect=false', `--controllers=${controllers.join(',')}`],
      ]);
    },
  };
}

async function uidOf(client: KubeClient, namespace: string, pod: string): Promise<string> {
  const { metadata } = (await client.get(`/api/v1/namespaces/${namespace}/pods/${pod}`)) as {
    metadata: { uid: string };
  };
  return metadata.uid;
}

/** etcd syncs each write and would wait for a busy disk. No data has to outlive the tests. */
async function memoryOrDisk(): Promise<string> {
  const free = await statfs(MEMORY_DISK).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  return free < ETCD_NEEDS ? tmpdir() : MEMORY_DISK;
}

async function compact(etcdUrl: string): Promise<void> {
  const call = async (verb: string, body: object) => {
    const answer = await fetch(`${etcdUrl}/v3/kv/${verb}`, { method: 'POST', body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`etcd: ${verb}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as { header: { revision: string } };
  };
  const { header } = await call('range', { key: Buffer.from('/').toString('base64') });
  await call('compaction', { revision: header.revision, physical: true });
}

/** @throws Error that names the missing binary and the searched directories */
export function binary(name: string): string {
  const found = [...assetDirectories(), '/usr/bin', '/usr/local/bin']
    .map((directory) => join(directory, name))
    .find((path) => existsSync(path));
  if (found === undefined) throw new Error(`${name} is in none of ${assetDirectories().join(', ')}`);
  return found;
}

async function writeFiles(
  file: (name: string) => string,
  { cert, key }: { readonly cert: string; readonly key: string },
  users: readonly string[],
): Promise<void> {
  const accounts = generateKeyPairSync('rsa', { modulusLength: 2048 });
  await writeFile(file('tls.crt'), cert);
  await writeFile(file('tls.key'), key, { mode: 0o600 });
  await writeFile(file('sa.key'), accounts.privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 });
  await writeFile(file('sa.pub'), accounts.publicKey.export({ type: 'spki', format: 'pem' }));
  await writeFile(file('tokens.csv'), users.map((line) => `${line}\n`).join(''), { mode: 0o600 });
}

async function ready(client: KubeClient, apiServer: Program): Promise<void> {
  await until('the API server to be ready', async () => {
    apiServer.assertAlive();
    // The probe includes the hook that creates the default roles (system:basic-user and so on), but reports ok before
    // the namespaces exist.
    await probe(client, '/readyz');
    await client.get('/api/v1/namespaces/default', { timeout: 2 });
    return true;
  });
}

interface Resource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

async function createObjects(client: KubeClient, objects: readonly KubernetesObject[]): Promise<void> {
  for (const object of objects) {
    const { name, namespaced } = await discover(client, object);
    const { apiVersion, metadata } = object;
    const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const scope = namespaced ? `/namespaces/${metadata.namespace ?? 'default'}` : '';
    try {
      await client.create(`${base}${scope}/${name}`, object, { timeout: START_SECONDS });
    } catch (error) {
      if (!(error instanceof Error && 'reason' in error && error.reason === 'AlreadyExists')) throw error;
    }
  }
  await Promise.all(objects.map(async (object) => served(client, object)));
}

/** Waits until a new CustomResourceDefinition is served: until then, requests for its objects get 404. */
async function served(client: KubeClient, { kind, spec }: KubernetesObject): Promise<void> {
  if (kind !== 'CustomResourceDefinition') return;
  const { group, names, versions } = spec as {
    group: string;
    names: { plural: string };
    versions: { name: string; served: boolean }[];
  };
  for (const version of versions.filter((version) => version.served)) {
    const path = `/apis/${group}/${version.name}/${names.plural}?limit=1`;
    await until(`${path} to be served`, () => client.get(path));
  }
}

/** A new definition is served a moment later. */
function discover(client: KubeClient, { apiVersion, kind }: KubernetesObject): Promise<Resource> {
  const path = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return until(`${apiVersion} ${kind} to be served`, async () => {
    const { resources } = (await client.get(path)) as { resources: Resource[] };
    return resources.find((resource) => resource.kind === kind && !resource.name.includes('/'));
  });
}

/** A probe answers `ok`, which is not JSON. */
async function probe(client: KubeClient, path: string): Promise<void> {
  try {
    await client.get(path, { timeout: 2 });
  } catch (error) {
    if (!(error instanceof KubeError && error.reason === 'BadAnswer')) throw error;
  }
}
