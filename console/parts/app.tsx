import { numberText } from '../data/shape.ts';
import { hashOf, route } from '../state/route.ts';
import { oldSince, totals, vms, vmsToLookAt, waiting, waitingBroken } from '../state/state.ts';
import { Announcer, Banner, Header } from './header.tsx';
import { NodeDetail } from './node-detail.tsx';
import { NodeList } from './node-list.tsx';
import { PodDetail } from './pod-detail.tsx';
import { Summary } from './summary.tsx';
import { layout } from './virtual-grid.tsx';
import { VmDetail } from './vm-detail.tsx';
import { VmList, WaitingList } from './vm-list.tsx';

const LIST_LABELS = { nodes: 'Nodes', vms: 'Started VMs', waiting: 'Waiting VMs and pods' } as const;

export function App() {
  const at = route.value;
  const { list, chosen } = at;
  const classes = ['main', chosen !== undefined && 'has-detail', `is-${layout.value}`, oldSince.value && 'is-old'];
  return (
    <>
      <button type="button" class="skip" onClick={skipToList}>
        Skip to the list
      </button>
      <Header />
      <aside aria-label="Notices">
        <Banner />
      </aside>
      <main class={classes.filter(Boolean).join(' ')}>
        <h1 class="unseen">Plumbline console</h1>
        <Summary />
        <nav class="tabs" aria-label="Lists">
          <Tab to="nodes" title="Nodes" count={totals.value.nodes} attention={totals.value.withProblems} />
          <Tab to="vms" title="Started VMs" count={vms.value.length} attention={vmsToLookAt.value} />
          <Tab to="waiting" title="Waiting" count={waiting.value.length} attention={waitingBroken.value} />
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
  readonly attention?: number;
}

function Tab({ to, title, count, attention = 0 }: TabProps) {
  return (
    <a href={hashOf({ list: to })} aria-current={route.value.list === to ? 'page' : undefined}>
      {title} <span class="count">{numberText(count)}</span>{' '}
      {attention > 0 && (
        <span class="count is-attention" title={`${numberText(attention)} need attention`}>
          {numberText(attention)}
          <span class="unseen"> need attention</span>
        </span>
      )}
    </a>
  );
}

function skipToList(): void {
  document.querySelector<HTMLElement>('[role="grid"]')?.focus();
}
