import assert from 'node:assert/strict';
import { planLines } from '../../../cli/interference/run.ts';
import { interferenceStatus } from '../../../model/agent-status.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { NAMESPACE } from '../cluster.ts';
import { nicOf, wireSwitch } from './guest-switch.ts';
import { PHYSNET1 } from './placement.ts';
import type { Scenario, Scene } from './scenario.ts';
import type { ScenePod } from './scene-pods.ts';

/** Seconds for the agent's registration and report in the emulation, and for one of its passes. */
const REGISTERED_WITHIN = 600;
const MOVED_WITHIN = 60;
/** The CPUs of a NUMA node of the lab, and of its first core, which its first pod gets. */
const CELL = CpuSet.parse('4-7');
const CORE = CpuSet.parse('4-5');

/** The shipped component on a real kubelet: what the kernel has when the container's first instruction runs. */
export const INTERRUPTS: Scenario = {
  name: 'interrupts',
  about: 'the component interrupts: a NIC’s interrupts leave a pod’s CPUs before its container starts, and return',
  daemonSet: true,
  components: ['base/node-agent/components/interrupts'],
  async play(scene) {
    const { lab, agent, cluster, pods, holds, undo } = scene;
    await wireSwitch(scene);
    const nic = await nicOf(lab, 1);
    const masks = await masksOf(scene, nic);
    const rx = masks.find(({ name }) => name.endsWith('rx-0'));
    assert.ok(rx !== undefined && masks.length > 2, `interrupts of ${nic}: ${JSON.stringify(masks)}`);
    const steering = `/sys/class/net/${nic}/queues/rx-0/rps_cpus`;
    undo(() => lab.run(`echo ${rx.cpus} >${rx.file}; echo 0 >${steering}`));
    await lab.run(`echo ${CORE} >${rx.file} && echo ${CELL.toMask().slice(2)} >${steering}`);
    const before = await masksOf(scene, nic);

    await agent.start();
    await holds('the agent runs from its image with the component, and registers', () =>
      cluster.readyNode(REGISTERED_WITHIN, new Map([[PHYSNET1, 110]])),
    );
    const files = [...before.map(({ file }) => file), `/host${steering}`];
    const volumes = [{ name: 'sys', hostPath: { path: '/sys' } }];
    const pod = await pods.create('exclusive', {}, { containers: [recorder(files)], volumes });
    await holds('a pod with a device runs on CPUs of its own', async () => {
      assert.equal(await pods.state(pod), 'Running');
      assert.equal(await pods.cpus(pod), CORE.toString());
    });
    await holds('when its container starts, the NIC’s interrupts and packet steering have left them', async () => {
      const recorded = await recordedMasks(scene, pod);
      assert.equal(recorded.get(rx.file), CELL.minus(CORE).toString());
      assert.equal(CpuSet.fromMask(recorded.get(`/host${steering}`) ?? '').toString(), CELL.minus(CORE).toString());
      const others = before.filter(({ file }) => file !== rx.file);
      for (const { name, file, cpus } of others)
        assert.equal(recorded.get(file), CpuSet.parse(cpus).minus(CORE).toString(), name);
      return `${rx.name}: ${before.find(({ file }) => file === rx.file)?.cpus} -> ${recorded.get(rx.file)}`;
    });
    await holds('the agent’s plan names them, what only the kernel sets, and the boot option', async () => {
      const status = await statusOf(scene);
      assert.deepEqual([status.mode, status.problems], ['move', []]);
      const lines = planLines(status, true);
      const line = lines.find((text) => text.includes(rx.name)) ?? lines.join('\n');
      assert.match(line, /interrupt .* 4-5 +6-7 +6-7 +(?:moved|pending)$/);
      assert.match(lines.join('\n'), /virtio\d+-req\.\d+ .* managed$/m);
      assert.match(lines.join('\n'), /interrupts? of the kernel: isolcpus=managed_irq,CPUS/);
      return line.trim().replaceAll(/ +/g, ' ');
    });
    await pods.remove(pod);
    await holds(
      'they return after its end',
      async () => assert.deepEqual(await masksOf(scene, nic), before),
      MOVED_WITHIN,
    );
    await holds('the kernel refused the agent nothing', async () => {
      const refused = (await agent.log()).filter((line) => /EPERM|EACCES|EROFS|forbidden/.test(JSON.stringify(line)));
      assert.deepEqual(refused, []);
    });
  },
};

interface IrqMask {
  readonly name: string;
  readonly file: string;
  readonly cpus: string;
}

async function masksOf({ lab }: Scene, nic: string): Promise<IrqMask[]> {
  const each = `n=$(basename $d); echo "$(cat $d/actions) $n $(cat /proc/irq/$n/smp_affinity_list)"`;
  const lines = (await lab.run(`for d in /sys/kernel/irq/*; do ${each}; done`)).split('\n');
  const irqs = lines.filter((line) => line.startsWith(nic)).map((line) => line.split(' '));
  return irqs.map(([name = '', number = '', cpus = '']) => {
    return { name, file: `/proc/irq/${number}/smp_affinity_list`, cpus };
  });
}

/** A container that prints these files before it does anything else. Its own /sys has only its own network. */
function recorder(files: readonly string[]): object {
  return {
    name: 'main',
    image: 'lab/busybox:1',
    imagePullPolicy: 'Never',
    command: ['sh', '-c', `grep -H . ${files.join(' ')}; exec sleep 86400`],
    resources: { limits: { memory: '16Mi', cpu: String(CORE.size), [PHYSNET1]: '1' } },
    volumeMounts: [{ name: 'sys', mountPath: '/host/sys' }],
  };
}

async function recordedMasks({ lab }: Scene, { name, uid }: ScenePod): Promise<ReadonlyMap<string, string>> {
  const log = await lab.run(`cat /var/log/pods/${NAMESPACE}_${name}_${uid}/main/0.log`);
  return new Map([...log.matchAll(/^\S+ stdout F (\S+?):(\S*)$/gm)].map(([, file = '', value = '']) => [file, value]));
}

async function statusOf({ lab }: Scene) {
  const request = 'fetch("http://127.0.0.1:8082/interference").then((r) => r.text()).then(console.log)';
  return interferenceStatus.parse(JSON.parse(await lab.run(`node -e '${request}'`)));
}
