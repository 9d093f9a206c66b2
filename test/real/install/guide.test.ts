import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse, stringify } from 'yaml';
import { DECISION_ANNOTATION, FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY, SCHEDULER } from '../../../model/names.ts';
import { buildCli, PROGRAM } from '../../cli/run.ts';
import { root } from '../../support/bundles.ts';
import { tempDirectories } from '../../support/files.ts';
import { readBlocks } from '../../support/guide-blocks.ts';
import { pathOf, skipWithout } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { namespaceOf, onControlPlane } from '../control-plane-stage.ts';
import { launcherFor, localnet, reportingNode, sceneOf } from '../webhook/objects-fixture.ts';
import { SYSTEM } from './daemons-stage.ts';
import { DEFINITIONS, KUBEVIRTS } from './foreign-definitions-fixture.ts';
import { type OrderStage, startOrderStage } from './order-stage.ts';

const PAGE = join(root, 'docs/tasks/install.md');
const RELEASE_FILE = /https:\/\/\S+\/(plumbline-kubernetes-(1\.\d+)\.yaml)/;
/** What needs a published release; each is replaced by the same file, chart or command of this checkout. */
const REPLACED: readonly (readonly [RegExp, string])[] = [
  [/^npm install --global https:\S+\.tgz$/, 'plumbline --version'],
  [RELEASE_FILE, '$1'],
  // The ways to install follow each other here, so the namespace exists.
  [/^(kubectl create namespace \S+)$/, '$1 --dry-run=client -o yaml | kubectl apply --server-side -f -'],
  [/^helm install plumbline oci:\S+ --version \S+ (.*)$/, 'helm template plumbline manifests/chart/plumbline $1'],
];
/** What a command has to print, by its beginning. One that is not here has to exit with status 0. */
const OUTPUT: readonly (readonly [RegExp, RegExp])[] = [
  [/^kubectl -n kubevirt patch/, /kubevirt\.kubevirt\.io\/kubevirt patched/],
  [/^kubectl get nodes/, /CPUMANAGER\s+CPUMANAGER\n.*worker-1.* true\s+true/is],
  [/^plumbline doctor preflight/, /cainjector/],
  [
    /^kubectl apply .*-f https/,
    /customresourcedefinition.*serverside-applied.*deployment\S+plumbline-webhook serverside/s,
  ],
  [/^npm run .*kubectl apply/, /deployment\S+plumbline-webhook serverside-applied/],
  [/^kubectl apply .*-k \./, /deployment\S+plumbline-console serverside-applied/],
  [/^kubectl create namespace/, /namespace\/plumbline-system serverside-applied/],
  [/^kubectl label namespace/, /namespace\/plumbline-system (?:not )?labeled/],
  [/^helm/, /kind: Deployment/],
  [/^plumbline doctor$/, /plumbline-webhook/],
];
/** Commands that may exit with status 1, because they report something: no daemon runs here. */
const REPORTS = /^plumbline doctor/;
interface Sample {
  readonly resources?: readonly string[];
  readonly images?: readonly { readonly newName: string }[];
  readonly patches?: readonly unknown[];
}

const samples = [...readFileSync(PAGE, 'utf8').matchAll(/^```yaml\n(.*?)^```$/gms)].map(
  ([, text = '']) => parse(text) as Sample,
);
const commands = readBlocks(PAGE).flatMap(({ lines }) =>
  lines
    .join('\n')
    .replaceAll(/ \\\n\s*/g, ' ')
    .split('\n'),
);

describe('docs/tasks/install.md, on a real API server', function () {
  onControlPlane(this);
  this.timeout(600_000);
  const temp = tempDirectories();
  let stage: OrderStage;
  let folder: string;
  const kustomization = samples.find(({ images }) => images !== undefined);
  const rollout = samples.find(({ patches }) => patches !== undefined);

  before(async () => {
    buildCli();
    stage = await startOrderStage([...DEFINITIONS, KUBEVIRTS]);
    const labels = { 'kubevirt.io/cpumanager': 'true', cpumanager: 'true' };
    await stage.plane.create(...['kubevirt', 'tenants', 'others'].map(namespaceOf), {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'worker-1', labels },
    });
    await until('KubeVirt’s kind to be served', async () => {
      const kubevirt = { apiVersion: 'kubevirt.io/v1', kind: 'KubeVirt', metadata: { name: 'kubevirt' }, spec: {} };
      return stage.kubectl(['-n', 'kubevirt', 'apply', '-f', '-'], stringify(kubevirt)).status === 0;
    });
    folder = temp();
    for (const name of ['manifests', 'packaging', 'package.json']) {
      cpSync(join(root, name), join(folder, name), { recursive: true });
    }
    mkdirSync(join(folder, 'bin'));
    const program = `#!/bin/sh\nexec "${process.execPath}" "${PROGRAM}" "$@"\n`;
    writeFileSync(join(folder, 'bin/plumbline'), program, { mode: 0o755 });
    writeFileSync(join(folder, 'kustomization.yaml'), stringify(kustomization));
  });
  after(() => stage?.stop());

  const run = (command: string) => {
    const { HELM = '' } = process.env;
    const programs = [join(folder, 'bin'), dirname(pathOf('kubectl')), dirname(HELM), process.env['PATH']].join(':');
    const env = { ...process.env, KUBECONFIG: stage.plane.adminKubeconfig, PATH: programs };
    const line = REPLACED.reduce((text, [pattern, by]) => text.replace(pattern, by), command);
    const { status, stdout, stderr } = spawnSync('bash', ['-o', 'pipefail', '-c', line], {
      cwd: folder,
      env,
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
    });
    return { status, output: `${stdout}${stderr}` };
  };
  const images = (): string[] => {
    const text = run(`kubectl -n ${SYSTEM} get deployments,daemonsets -o yaml`).output;
    return [...new Set([...text.matchAll(/^\s+(?:- )?image: (.*plumbline-.*)$/gm)].map(([, image = '']) => image))];
  };

  it('has commands for each way to install', () => {
    assert.ok(commands.length >= 11, commands.join('\n'));
    for (const [beginning] of OUTPUT)
      assert.ok(
        commands.some((command) => beginning.test(command)),
        `${beginning}`,
      );
    assert.deepEqual(kustomization?.images?.length, 4);
  });

  for (const command of commands) {
    it(command, function () {
      if (command.startsWith('helm')) skipWithout('helm', this);
      const [, file, minor] = RELEASE_FILE.exec(command) ?? [];
      if (file !== undefined) assert.equal(run(`npm run --silent release:manifest -- ${minor} > ${file}`).status, 0);
      const { status, output } = run(command);
      assert.ok(status === 0 || (status === 1 && REPORTS.test(command)), `status ${status}: ${output}`);
      const [, expected] = OUTPUT.find(([beginning]) => beginning.test(command)) ?? [];
      if (expected !== undefined) assert.match(output, expected);
      if (command === 'plumbline doctor preflight') assert.doesNotMatch(output, /CPUManager/);
      if (/registry\.example\.org|-k \./.test(command)) {
        const other = images().filter((image) => !image.startsWith('registry.example.org/plumbline-'));
        assert.deepEqual(other, []);
      }
    });
  }

  describe('with the patch for one namespace', () => {
    before(async () => {
      const patched = { ...kustomization, patches: rollout?.patches };
      writeFileSync(join(folder, 'kustomization.yaml'), stringify(patched));
      const { status, output } = run('kubectl apply --server-side -k .');
      assert.equal(status, 0, output);
      await reportingNode(stage.plane, 'worker-2', { physnet0: '0' });
      await stage.plane.create(localnet('tenants', 'data', 'physnet0'), localnet('others', 'data', 'physnet0'));
      const leases = `/apis/coordination.k8s.io/v1/namespaces/${SYSTEM}/leases`;
      await stage.plane.client.create(leases, {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: SCHEDULER },
        spec: { holderIdentity: 'leader', leaseDurationSeconds: 15 },
      });
      stage.certificates();
      await stage.startWebhook();
      await until('the webhook to be switched on', stage.isSwitchedOn);
      await until('the report and the networks to be seen', async () => {
        const [scheduler, , device] = await launch('tenants', 'first');
        return scheduler === SCHEDULER && device === '1';
      });
    });

    /** What the API server makes of a launcher with a network: its scheduler, CPUs, device, and whether it is decided. */
    async function launch(namespace: string, name: string, annotations: Readonly<Record<string, string>> = {}) {
      const scene = sceneOf(stage.plane.client);
      const vmi = await scene.vmi(name, { namespace, annotations, networks: { data: 'data' } });
      const { metadata, spec } = await scene.admit(launcherFor(vmi, { cpu: '9' }), { dryRun: 'All' });
      const { cpu, 'physnet.plumbline.dev/physnet0': device } = spec.containers[0]?.resources.limits ?? {};
      return [spec.schedulerName, cpu, device, DECISION_ANNOTATION in (metadata.annotations ?? {})];
    }
    const OPTED_IN = { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY };

    for (const [label, namespace, annotations, expected] of [
      ['there, a VM gets the scheduler and its network', 'tenants', {}, [SCHEDULER, '9', '1', true]],
      ['elsewhere, a VM is as without Plumbline', 'others', {}, ['default-scheduler', '9', undefined, false]],
      ['elsewhere, a VM that opts in is served', 'others', OPTED_IN, [SCHEDULER, '10', '1', true]],
    ] as const) {
      it(label, async () => {
        assert.deepEqual(await launch(namespace, `vm-${label.length}`, annotations), expected);
      });
    }
  });
});
