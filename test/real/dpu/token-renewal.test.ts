import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { apiAccess } from '../../../kube/api-access.ts';
import { createKubeClient, type KubeClient, KubeError } from '../../../kube/client.ts';
import { createTokenRenewal, readTokenClaims } from '../../../node-agent/dpu-lease/token-renewal.ts';
import { monotonicSeconds } from '../../../runtime/time.ts';
import { testMetrics } from '../../node-agent/support.ts';
import { DENIED_BY_RBAC, deniedByPolicy, isDenied } from '../../support/denied.ts';
import { eventually } from '../../support/eventually.ts';
import { recordingLogger } from '../../support/logger.ts';
import { onControlPlane } from '../control-plane.ts';
import { type InstalledAgents, installAgents, WITH_DPUS } from '../node-agent/installed.ts';

const [OWN, OTHER] = ['worker-1', 'worker-2'];
const NAMESPACE = 'plumbline-dpu';
const DAY = 86_400;
const TOKEN_POLICY = deniedByPolicy('plumbline-dpu-tokens');
const accounts = (namespace = NAMESPACE) => `/api/v1/namespaces/${namespace}/serviceaccounts`;
const request = (spec: object = {}) => ({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec });

interface Requested {
  readonly status: { readonly token: string };
}

describe('the renewal of a DPU’s token, on a real API server', function () {
  onControlPlane(this);
  let installed: InstalledAgents;
  let admin: KubeClient;
  let dpu: KubeClient;

  before(async () => {
    installed = await installAgents([OWN, OTHER], WITH_DPUS);
    admin = installed.plane.client;
    dpu = await installed.account(NAMESPACE, OWN);
  });
  after(async () => installed?.stop());

  const isRefused = (account: string, spec: object, form: RegExp, namespace?: string): Promise<boolean> =>
    isDenied(() => dpu.create(`${accounts(namespace)}/${account}/token`, request(spec)), form);

  it('replaces a token for ten minutes with one for a day, which the next request uses', async () => {
    const { directory, kubeconfig } = installed.plane;
    const tokenFile = join(directory, 'dpu.token');
    const first = (await admin.create(`${accounts()}/${OWN}/token`, request({ expirationSeconds: 600 }))) as Requested;
    writeFileSync(tokenFile, first.status.token, { mode: 0o640 });
    const file = await kubeconfig('renewing', 'none');
    writeFileSync(file, readFileSync(file, 'utf8').replace('token: none', 'tokenFile: dpu.token'));
    const access = await apiAccess({ kubeconfig: file, serviceHost: undefined, servicePort: 443 });
    assert.equal(access.tokenFile, tokenFile);
    const client = createKubeClient(access, 'plumbline-test');
    const { log, lines } = recordingLogger();
    const metrics = testMetrics();
    const stop = new AbortController();
    const deps = { client, tokenFile, log, metrics, wallClock: Date.now, now: monotonicSeconds };
    const done = createTokenRenewal(deps).run(stop.signal);
    const renewed = () => readFileSync(tokenFile, 'utf8').trim() !== first.status.token;
    await eventually(renewed, 'another token', 10).catch((error: Error) => assert.fail(JSON.stringify([error, lines])));
    const { namespace, account, issued, expires } = readTokenClaims(access.token() ?? '');
    assert.deepEqual([namespace, account, expires - issued], [NAMESPACE, OWN, DAY]);
    assert.equal(statSync(tokenFile).mode & 0o777, 0o600);
    await eventually(async () => (await metrics.dpuTokenExpiry.get()).values[0]?.value === DAY, 'the metric');
    // It is the new one that the API server takes: who is asked?
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
    const { status } = (await client.create('/apis/authentication.k8s.io/v1/selfsubjectreviews', review)) as {
      readonly status: { readonly userInfo: { readonly username: string } };
    };
    assert.equal(status.userInfo.username, `system:serviceaccount:${NAMESPACE}:${OWN}`);
    stop.abort();
    await done;
    await client.close();
  });

  const forged: [string, Parameters<typeof isRefused>][] = [
    ['one of another DPU', [OTHER, {}, TOKEN_POLICY]],
    ['one for a year', [OWN, { expirationSeconds: 365 * DAY }, TOKEN_POLICY]],
    ['one for a second more than a day', [OWN, { expirationSeconds: DAY + 1 }, TOKEN_POLICY]],
    [
      'one that is bound to a node',
      [OWN, { boundObjectRef: { apiVersion: 'v1', kind: 'Node', name: OWN } }, TOKEN_POLICY],
    ],
    ['one of the extender', ['plumbline-scheduler-plugin', {}, DENIED_BY_RBAC, 'plumbline-system']],
    ['one of the default account of its namespace', ['default', {}, TOKEN_POLICY]],
  ];
  for (const [what, args] of forged) {
    it(`a DPU may not request a token: ${what}`, async () => {
      const metadata = { name: args[0], namespace: args[3] ?? NAMESPACE };
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
