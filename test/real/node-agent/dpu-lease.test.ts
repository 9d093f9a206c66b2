import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createKubeClient } from '../../../kube/api-transport.ts';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import { apiAccess } from '../../../kube/daemon-access.ts';
import { parseDpuRun, restartOf } from '../../../model/lease/dpu-run.ts';
import { DPU_RUN_ANNOTATION } from '../../../model/names.ts';
import { DpuLease } from '../../../node-agent/dpu-lease/dpu.ts';
import { maintainDpuLease, releaseDpuLease } from '../../../node-agent/dpu-lease/dpu-host.ts';
import { readTokenClaims, TokenRenewal } from '../../../node-agent/dpu-lease/token-renewal.ts';
import { monotonicSeconds } from '../../../runtime/time.ts';
import { testMetrics } from '../../node-agent/support.ts';
import { DENIED_BY_RBAC, deniedByPolicy, isDenied } from '../../support/denied.ts';
import { eventually } from '../../support/eventually.ts';
import { recordingLogger } from '../../support/logger.ts';
import { onControlPlane } from '../control-plane-stage.ts';
import { DPUS, type InstalledAgents, installAgents, WITH_DPUS } from './stage.ts';

const OWN = 'worker-1';
const OTHER = 'worker-2';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/ovn-kubernetes/leases';
const PATH = `${LEASES}/ovn-dpu-${OWN}`;
const MERGE = 'application/merge-patch+json';
const lease = { namespace: 'ovn-kubernetes', name: `ovn-dpu-${OWN}` };
const timing = { renewInterval: 0.2, duration: 40 };

interface LeaseObject {
  metadata: { ownerReferences: { name: string; uid: string }[]; annotations?: Readonly<Record<string, string>> };
  spec: { renewTime?: string; holderIdentity: string };
}

const DAY = 86_400;
const TOKEN_POLICY = deniedByPolicy('plumbline-dpu-tokens');
const accounts = (namespace = DPUS) => `/api/v1/namespaces/${namespace}/serviceaccounts`;
const request = (spec: object = {}) => ({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec });

const AGENT_POLICY = deniedByPolicy('plumbline-node-agent');
const DPU_POLICY = deniedByPolicy('plumbline-dpu');

const object = (node: string, spec: object = {}) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: `ovn-dpu-${node}`, namespace: 'ovn-kubernetes' },
  spec: { holderIdentity: 'ovnkube-dpu-node', leaseDurationSeconds: 40, ...spec },
});

describe('the account of a DPU, on a real API server', function () {
  onControlPlane(this);
  let installed: InstalledAgents;
  let host: KubeClient;
  let dpu: KubeClient;
  let admin: KubeClient;

  before(async () => {
    installed = await installAgents([OWN, OTHER], WITH_DPUS);
    host = await installed.agent(OWN);
    dpu = await installed.account(DPUS, OWN);
    admin = installed.plane.client;
    await installed.plane.create(object(OTHER));
  });
  after(async () => installed?.stop());

  describe('its Lease', () => {
    let stop: AbortController;
    beforeEach(() => {
      stop = new AbortController();
    });
    afterEach(() => stop.abort());

    const renewal = () => ({ spec: { renewTime: new Date().toISOString().replace('Z', '000Z') } });
    const current = async () => (await admin.get(PATH)) as LeaseObject;
    const runHost = () =>
      maintainDpuLease({ client: host, nodeName: OWN, lease, timing, log: recordingLogger().log }, stop.signal);
    const runDpu = (client: KubeClient) =>
      new DpuLease({
        client,
        lease,
        timing,
        probe: async () => undefined,
        readRun: () => ({ run, ageSeconds: 0 }),
        log: recordingLogger().log,
        metrics: testMetrics(),
        wallClock: Date.now,
      }).run(stop.signal);
    let run = { bootId: 'a', pid: 1, start: 1 };
    const created = () => eventually(async () => (await current().catch(() => undefined)) !== undefined, 'created');
    const renewedAfter = (before: string | undefined) =>
      eventually(async () => ((await current()).spec.renewTime ?? '') > (before ?? ''), 'renewed');

    it('the host creates the Lease and the DPU renews it, each with its own account', async () => {
      void runHost();
      await created();
      assert.equal((await current()).spec.renewTime, undefined);
      void runDpu(dpu);
      await renewedAfter('');
      await renewedAfter((await current()).spec.renewTime);
    });

    it('the DPU records what runs on it, and a restart, and later renewals keep both', async () => {
      void runHost();
      await created();
      void runDpu(dpu);
      const recorded = async () => parseDpuRun((await current()).metadata.annotations?.[DPU_RUN_ANNOTATION]);
      await eventually(async () => (await recorded())?.bootId === 'a', 'the first run');
      assert.equal(restartOf(await recorded()), undefined);
      run = { ...run, bootId: 'b' };
      await eventually(async () => restartOf(await recorded())?.kind === 'reboot', 'the reboot');
      await renewedAfter((await current()).spec.renewTime);
      assert.deepEqual((await recorded())?.restart?.previous, { ...run, bootId: 'a' });
    });

    it('the host, but not the DPU, may release the Lease, and takes it again when the check is on', async () => {
      void runHost();
      await created();
      stop.abort();
      stop = new AbortController();
      await assert.rejects(dpu.patch(PATH, MERGE, { spec: { holderIdentity: '' } }), /owner, holder and duration/);
      void releaseDpuLease({ client: host, lease, log: recordingLogger().log }, stop.signal);
      await eventually(async () => (await current()).spec.holderIdentity === '', 'released');
      stop.abort();
      stop = new AbortController();
      void runHost();
      await eventually(async () => (await current()).spec.holderIdentity === 'ovnkube-dpu-node', 'taken up');
    });

    it('a Node that is created again is the only owner, with its new uid, and renewals continue', async () => {
      void runHost();
      void runDpu(dpu);
      const before = await current();
      await admin.delete(`/api/v1/nodes/${OWN}`);
      await installed.plane.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: OWN } });
      const { metadata } = (await admin.get(`/api/v1/nodes/${OWN}`)) as { metadata: { uid: string } };
      const owners = async () => (await current()).metadata.ownerReferences.map(({ uid }) => uid);
      await eventually(async () => (await owners()).join() === metadata.uid, 'one owner, the new one');
      assert.notEqual(before.metadata.ownerReferences[0]?.uid, metadata.uid);
      await renewedAfter((await current()).spec.renewTime);
    });

    const another = `${LEASES}/ovn-dpu-${OTHER}`;
    const stolen = { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: OTHER, uid: 'u' }] } };
    const record = (text: string) => ({ metadata: { annotations: { [DPU_RUN_ANNOTATION]: text } } });
    const changes: [string, object][] = [
      ['extends the duration', { spec: { leaseDurationSeconds: 4_000_000 } }],
      ['sets its holder', { spec: { holderIdentity: 'x' } }],
      ['removes the holder', { spec: { ...renewal().spec, holderIdentity: null } }],
      ['sets acquireTime', { spec: { ...renewal().spec, acquireTime: '2026-11-01T10:00:00.000000Z' } }],
      ['sets leaseTransitions', { spec: { ...renewal().spec, leaseTransitions: 1 } }],
      ['drops owners', { metadata: { ownerReferences: [] } }],
      ['adds a finalizer', { metadata: { finalizers: ['example.org/kept'] } }],
      ['adds an annotation', { metadata: { annotations: { a: 'x'.repeat(200_000) } } }],
      ['writes a long record', record('x'.repeat(2049))],
      ['adds a label', { metadata: { labels: { a: 'b' } } }],
    ];
    const forged: [string, () => Promise<unknown>, RegExp][] = [
      ['a host that creates the Lease of another node', () => host.create(LEASES, object('worker-3')), AGENT_POLICY],
      ['a host that writes the Lease of another node', () => host.patch(another, MERGE, renewal()), AGENT_POLICY],
      ['a host that renews its own', () => host.patch(PATH, MERGE, renewal()), AGENT_POLICY],
      ['a host that makes another node the owner', () => host.patch(PATH, MERGE, stolen), AGENT_POLICY],
      ['a host that says what runs on the DPU', () => host.patch(PATH, MERGE, record('{}')), AGENT_POLICY],
      ['a host that deletes the Lease', () => host.delete(PATH), DENIED_BY_RBAC],
      ['a DPU that renews the Lease of another node', () => dpu.patch(another, MERGE, renewal()), DPU_POLICY],
      ['a DPU that creates a Lease', () => dpu.create(LEASES, object('worker-3')), DENIED_BY_RBAC],
      ['a DPU that deletes the Lease', () => dpu.delete(PATH), DENIED_BY_RBAC],
      ['a DPU that reads a Node', () => dpu.get(`/api/v1/nodes/${OWN}`), DENIED_BY_RBAC],
      ...changes.map(([what, change]): [string, () => Promise<unknown>, RegExp] => [
        `a DPU that ${what}`,
        () => dpu.patch(PATH, MERGE, change),
        DPU_POLICY,
      ]),
    ];
    for (const [what, act, message] of forged) {
      it(`refuses ${what}`, async () => assert.equal(await isDenied(act, message), true));
    }
  });

  describe('the renewal of its token', () => {
    const isRefused = (account: string, spec: object, form: RegExp, namespace?: string): Promise<boolean> =>
      isDenied(() => dpu.create(`${accounts(namespace)}/${account}/token`, request(spec)), form);

    it('replaces a token for ten minutes with one for a day, which the next request uses', async () => {
      const { directory, kubeconfig } = installed.plane;
      const tokenFile = join(directory, 'dpu.token');
      const answer = await admin.create(`${accounts()}/${OWN}/token`, request({ expirationSeconds: 600 }));
      const { token } = (answer as { readonly status: { readonly token: string } }).status;
      writeFileSync(tokenFile, token, { mode: 0o640 });
      const file = await kubeconfig('renewing', 'none');
      writeFileSync(file, readFileSync(file, 'utf8').replace('token: none', 'tokenFile: dpu.token'));
      const access = await apiAccess(file);
      assert.equal(access.tokenFile, tokenFile);
      const client = createKubeClient(access, 'plumbline-test');
      const { log, lines } = recordingLogger();
      const metrics = testMetrics();
      const stop = new AbortController();
      const deps = { client, tokenFile, log, metrics, wallClock: Date.now, nowSeconds: monotonicSeconds };
      const done = new TokenRenewal(deps).run(stop.signal);
      const renewed = () => readFileSync(tokenFile, 'utf8').trim() !== token;
      await eventually(renewed, 'another token', 10).catch((error: Error) =>
        assert.fail(JSON.stringify([error, lines])),
      );
      const { namespace, account, issued, expires } = readTokenClaims(access.token() ?? '');
      assert.deepEqual([namespace, account, expires - issued], [DPUS, OWN, DAY]);
      assert.equal(statSync(tokenFile).mode & 0o777, 0o600);
      await eventually(async () => (await metrics.dpuTokenExpiry.get()).values[0]?.value === DAY, 'the metric');
      // It is the new one that the API server takes: who is asked?
      const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
      const { status } = (await client.create('/apis/authentication.k8s.io/v1/selfsubjectreviews', review)) as {
        readonly status: { readonly userInfo: { readonly username: string } };
      };
      assert.equal(status.userInfo.username, `system:serviceaccount:${DPUS}:${OWN}`);
      stop.abort();
      await done;
      await client.close();
    });

    const onNode = { boundObjectRef: { apiVersion: 'v1', kind: 'Node', name: OWN } };
    const forged: [string, Parameters<typeof isRefused>][] = [
      ['one of another DPU', [OTHER, {}, TOKEN_POLICY]],
      ['one for a year', [OWN, { expirationSeconds: 365 * DAY }, TOKEN_POLICY]],
      ['one for a second more than a day', [OWN, { expirationSeconds: DAY + 1 }, TOKEN_POLICY]],
      ['one that is bound to a node', [OWN, onNode, TOKEN_POLICY]],
      ['one of the extender', ['plumbline-scheduler-plugin', {}, DENIED_BY_RBAC, 'plumbline-system']],
      ['one of the default account of its namespace', ['default', {}, TOKEN_POLICY]],
    ];
    for (const [what, args] of forged) {
      it(`a DPU may not request a token: ${what}`, async () => {
        const metadata = { name: args[0], namespace: args[3] ?? DPUS };
        await installed.plane.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata });
        assert.equal(await isRefused(...args), true);
      });
    }

    it('refuses the tokens of a deleted account, so that nothing renews them', async () => {
      await admin.delete(`${accounts()}/${OWN}`);
      const refused = (status: number) =>
        dpu.create(`${accounts()}/${OWN}/token`, request()).then(
          () => false,
          (error: unknown) => error instanceof KubeError && error.status === status,
        );
      // The API server remembers for some seconds whose token it was; even so there is no account to make one for.
      assert.ok((await refused(404)) || (await refused(401)));
      await eventually(() => refused(401), 'the token counts for nothing');
    });
  });
});
