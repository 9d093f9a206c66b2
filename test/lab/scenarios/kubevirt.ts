import assert from 'node:assert/strict';
import { CPU_MASK_ANNOTATION } from '../../../model/names.ts';
import { FOREIGN_DEFINITIONS } from '../../real/webhook/crds-fixture.ts';
import { NAMESPACE } from '../cluster.ts';
import { ALIGNED, runsAligned } from '../kubevirt/aligned.ts';
import { missingKubeVirt } from '../kubevirt/assets.ts';
import { IMAGES_DISK, writeKubeVirtImages } from '../kubevirt/images.ts';
import { installKubeVirt } from '../kubevirt/installation.ts';
import { attachSwitchNetworks } from '../kubevirt/switch-network.ts';
import { assertBooted, createMachine } from '../kubevirt/virtual-machine.ts';
import { SCHEDULER, startControlDaemons } from './control-daemons.ts';
import { realMultus } from './guest-cni.ts';
import { enableAffinity, wireSwitch } from './guest-switch.ts';
import type { Scenario, Scene } from './scenario.ts';

/** Seconds: a guest that QEMU emulates in an emulated machine took eleven minutes to boot on two free cores. */
const BOOTED = 3000;
const SAMPLES = 20;
export const REAL_KUBEVIRT: Pick<Scenario, 'missing' | 'disks'> = {
  missing: () =>
    missingKubeVirt() ?? (realMultus() === undefined ? 'name the folder with multus in MULTUS_ASSETS' : undefined),
  disks: async (places, say) => ({ [IMAGES_DISK]: await writeKubeVirtImages(places, say) }),
};

export const KUBEVIRT: Scenario = {
  name: 'kubevirt',
  about: 'real virt-handler, virt-launcher, libvirt and QEMU: VMs whose guests boot',
  ...REAL_KUBEVIRT,
  async play(scene) {
    await installWithKubeVirt(scene);
    await boots(scene);
    await masked(scene);
  },
};

export async function installWithKubeVirt(scene: Scene): Promise<void> {
  for (const machine of scene.machines) {
    await wireSwitch(machine);
    await enableAffinity(machine);
  }
  await installKubeVirt(scene);
  for (const { agent, node, holds, report } of scene.machines) {
    await agent.start();
    await holds(`the agent of ${node.name} reports`, report);
  }
  await startControlDaemons(
    scene,
    FOREIGN_DEFINITIONS.filter(({ metadata }) => metadata.name.endsWith('.k8s.cni.cncf.io')),
  );
  await attachSwitchNetworks(scene);
}

async function boots(scene: Scene): Promise<void> {
  const machine = await createMachine(scene, 'aligned', ALIGNED);
  await runsAligned(scene, machine);
  await scene.holds('the guest boots', () => assertBooted(machine), BOOTED);
  await machine.remove();
}

async function masked(scene: Scene): Promise<void> {
  const { holds } = scene;
  const sampler = await sampleVcpus(scene, `${NAMESPACE}_masked`);
  const machine = await createMachine(scene, 'masked', {
    cpu: { cores: 2 },
    annotations: { [CPU_MASK_ANNOTATION]: '4:6' },
    schedulerName: SCHEDULER,
  });
  await holds('a VM with the mask 4:6 starts paused, and is resumed once it is pinned', async () => {
    const { status } = await machine.vmi();
    assert.equal(status?.phase, 'Running', await machine.state());
    assert.equal(
      status.conditions?.find(({ type }) => type === 'Paused'),
      undefined,
      'it is paused',
    );
  });
  await holds(
    'its guest never ran on other CPUs',
    async () => {
      const seen = whileTheGuestRan(await sampler.samples());
      assert.deepEqual(
        [...new Set(seen.map(({ vcpu }) => vcpu))].toSorted(),
        [0, 1],
        'the second vCPU has not run yet',
      );
      assert.deepEqual(
        seen.filter(({ vcpu, allowed }) => allowed !== ['4', '6'][vcpu]),
        [],
      );
      assert.ok(seen.length >= SAMPLES, `${seen.length} samples so far`);
      return `${seen.length} samples`;
    },
    BOOTED,
  );
  await machine.remove();
}

const UNIT = 'plumbline-lab-vcpus';
const FILE = '/run/plumbline-lab-vcpus';
/** Ticks of 10 ms that a vCPU's thread may use before its guest runs, for QEMU's own preparations. */
const BEFORE_THE_GUEST = 5;

interface VcpuSample {
  readonly vcpu: number;
  readonly ticks: number;
  readonly allowed: string;
}

/** Samples the vCPUs of a QEMU as often as possible, from before its start. @param guest as in its -name */
async function sampleVcpus(
  { lab, undo }: Scene,
  guest: string,
): Promise<{ samples(): Promise<readonly VcpuSample[]> }> {
  // Fields 14 and 15 of stat, whose name in brackets contains a blank.
  const look = `for t in /proc/$p/task/*; do read -r c <$t/comm || continue; case "$c" in CPU*)
  a=$(grep Cpus_allowed_list $t/status | cut -f2); s=$(sed 's/.*) //' $t/stat | cut -d' ' -f12,13); echo "$c $a $s";; esac; done`;
  const script = `while :; do p=$(pgrep -f -- 'guest=${guest},' | head -n 1); if [ -n "$p" ]; then ${look}; else sleep 0.2; fi; done`;
  undo(() => lab.run(`systemctl stop ${UNIT} 2>/dev/null; rm -f ${FILE} ${FILE}.sh`));
  await lab.run(`cat >${FILE}.sh`, script);
  await lab.run(`systemd-run --quiet --collect --unit=${UNIT} -p StandardOutput=truncate:${FILE} sh ${FILE}.sh`);
  return {
    async samples() {
      const text = await lab.run(`cat ${FILE}`);
      return [...text.matchAll(/^CPU (\d+)\/\S+ (\S+) (\d+) (\d+)$/gm)].map(([, vcpu, allowed = '', user, system]) => ({
        vcpu: Number(vcpu),
        ticks: Number(user) + Number(system),
        allowed,
      }));
    },
  };
}

const whileTheGuestRan = (samples: readonly VcpuSample[]): readonly VcpuSample[] =>
  samples.filter(({ ticks }) => ticks > BEFORE_THE_GUEST);
