import type { PodItem } from '../data/store.ts';
import { changes, ready, store } from '../state/state.ts';
import { Ago } from './ago.tsx';
import { Detail } from './detail.tsx';
import { type Fact, Facts } from './facts.tsx';
import { History } from './history.tsx';
import { NodeByNode } from './node-by-node.tsx';
import { wantsOf, whyOf } from './waiting-list.tsx';

/** Why one pod waits: the scheduler's last attempt, and the current answer for every node. */
export function PodDetail({ name }: { readonly name: string }) {
  changes.value;
  const pod = store.podNamed(name);
  const title = pod?.vm === undefined ? name : `${pod.namespace}/${pod.vm}`;
  return (
    <Detail title={title} kind={pod?.vm === undefined ? 'Pod' : 'VM'} back={{ list: 'waiting' }}>
      {pod === undefined ? (
        <p>{ready.value ? 'This pod no longer waits: it was placed or deleted.' : 'Loading …'}</p>
      ) : (
        <>
          <p class="problem">{whyOf(pod)}</p>
          <Facts facts={factsOf(pod)} />
        </>
      )}
      {pod !== undefined && (
        <p class="about">
          For remedies, including kube-scheduler’s own checks, run: <code>kubectl plumbline explain pod {name}</code>
        </p>
      )}
      <NodeByNode pod={name} reason={pod?.unscheduled} gone={pod === undefined} />
      {pod?.vm !== undefined && <History of="vm" name={title} />}
    </Detail>
  );
}

function factsOf({ namespace, name, vm, since, ...pod }: PodItem): Fact[] {
  return [
    ...(vm === undefined ? [] : [['Launcher', `${namespace}/${name}`] as const]),
    ['Wants', wantsOf(pod)],
    ...(since === undefined ? [] : [['Waits for', <Ago key="since" time={since} />] as const]),
  ];
}
