import { hashOf, route } from '../state/route.ts';
import { totals, vmsToLookAt, waiting } from '../state/state.ts';
import { Announcer, Banner, Header } from './header.tsx';
import { NodeDetail } from './node-detail.tsx';
import { NodeList } from './node-list.tsx';
import { PodDetail } from './pod-detail.tsx';
import { Summary } from './summary.tsx';
import { VmDetail } from './vm-detail.tsx';
import { VmList } from './vm-list.tsx';
import { WaitingList } from './waiting-list.tsx';

const LIST_LABELS = { nodes: 'Nodes', vms: 'Running VMs', waiting: 'Waiting VMs and pods' } as const;

export function App() {
  const at = route.value;
  const { list, chosen } = at;
  return (
    <>
      <button type="button" class="skip" onClick={skipToList}>
        Skip to the list
      </button>
      <Header />
      <Banner />
      <main class={chosen === undefined ? 'main' : 'main has-detail'}>
        <h1 class="unseen">Plumbline console</h1>
        <Summary />
        <nav class="tabs" aria-label="Lists">
          <Tab to="nodes" title="Nodes" count={totals.value.nodes} />
          <Tab to="vms" title="VMs" count={totals.value.pods} attention={vmsToLookAt.value} />
          <Tab to="waiting" title="Waiting" count={waiting.value.length} attention={waiting.value.length} />
        </nav>
        <section class="list" aria-label={LIST_LABELS[list]}>
          {list === 'nodes' && <NodeList chosen={chosen} />}
          {list === 'vms' && <VmList chosen={chosen} />}
          {list === 'waiting' && <WaitingList chosen={chosen} />}
        </section>
        {list === 'nodes' && chosen !== undefined && <NodeDetail key={chosen} name={chosen} />}
        {list === 'vms' && chosen !== undefined && <VmDetail key={chosen} name={chosen} />}
        {list === 'waiting' && chosen !== undefined && <PodDetail key={chosen} name={chosen} />}
      </main>
      <Announcer />
    </>
  );
}

interface TabProps {
  readonly to: keyof typeof LIST_LABELS;
  readonly title: string;
  readonly count: number;
  /** Number of entries that need attention. */
  readonly attention?: number;
}

function Tab({ to, title, count, attention = 0 }: TabProps) {
  const bad = attention === count ? '' : `${attention.toLocaleString('en')} of `;
  return (
    <a href={hashOf({ list: to })} aria-current={route.value.list === to ? 'page' : undefined}>
      {title}{' '}
      <span class={attention > 0 ? 'count is-attention' : 'count'}>
        {attention > 0 && bad}
        {count.toLocaleString('en')}
      </span>
    </a>
  );
}

function skipToList(): void {
  document.querySelector<HTMLElement>('[role="grid"]')?.focus();
}
