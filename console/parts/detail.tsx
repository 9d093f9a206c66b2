import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { StateVerdict } from '../data/wire.ts';
import type { ServerAnswer } from '../state/ask.ts';
import { go, hashOf, type Route } from '../state/route.ts';
import { OldAge } from './ago.tsx';

interface DetailProps {
  readonly title: string;
  readonly kind: string;
  readonly back: Route;
  readonly children: ComponentChildren;
}

/** The item that was selected in the list. The focus moves to its heading, and back to the list with Escape. */
export function Detail({ title, kind, back, children }: DetailProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'Escape' || event.defaultPrevented) return;
      go(back);
      document.querySelector<HTMLElement>('[role="grid"]')?.focus();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [back]);
  return (
    <article class="detail" aria-label={`${kind} ${title}`}>
      <header class="detail-head">
        <div>
          <p class="kind">{kind}</p>
          <h2 ref={heading} tabIndex={-1}>
            {title}
          </h2>
        </div>
        <a class="close" href={hashOf(back)}>
          <span class="unseen">Close</span>
          <span aria-hidden="true">✕</span>
        </a>
      </header>
      {children}
    </article>
  );
}

export type Fact = readonly [term: string, value: ComponentChildren];

export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts.map(([term, value]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface AnswerSectionProps<T> {
  /** Class of the section, and id of its heading. */
  readonly id: string;
  readonly look?: string;
  readonly title: string;
  readonly answer: ServerAnswer<T>;
  /** While there is no answer. */
  readonly asking: string;
  /** Class of the text of a failure. */
  readonly failedLook?: string;
  readonly children: (data: T) => ComponentChildren;
}

/** A section with the answer of a query. */
export function AnswerSection<T>(props: AnswerSectionProps<T>) {
  const { id, look = id, title, answer, asking, failedLook = 'problem', children } = props;
  return (
    <section class={look} aria-labelledby={id} aria-busy={answer === undefined}>
      <h3 id={id}>{title}</h3>
      {answer === undefined && <p class="about">{asking}</p>}
      {answer !== undefined && 'failed' in answer && <p class={failedLook}>{answer.failed}</p>}
      {answer !== undefined && 'data' in answer && children(answer.data)}
    </section>
  );
}

interface TableProps {
  readonly caption: string;
  readonly isCaptionSeen?: true;
  readonly look?: string;
  readonly heads: readonly ComponentChildren[];
  /** The rows. */
  readonly children: ComponentChildren;
}

export function Table({ caption, isCaptionSeen, look, heads, children }: TableProps) {
  return (
    <div class="table-frame">
      <table class={look}>
        <caption class={isCaptionSeen ? undefined : 'unseen'}>{caption}</caption>
        <thead>
          <tr>
            {heads.map((head, index) => (
              <th key={index} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** A link to an item of a list, with its name unless there is another text. */
export function Link({ list, chosen, children = chosen }: Required<Route> & { readonly children?: ComponentChildren }) {
  return <a href={hashOf({ list, chosen })}>{children}</a>;
}

/** @param look class of each paragraph */
export function Paragraphs({ texts, look }: { readonly texts: readonly string[]; readonly look: string }) {
  return texts.map((text) => (
    <p key={text} class={look}>
      {text}
    </p>
  ));
}

export function CpuList({ cpus }: { readonly cpus: string }) {
  return cpus.split(/(?<=,)/).map((part) => (
    <>
      <span key={part} class="unbroken">
        {part}
      </span>
      <wbr />
    </>
  ));
}

const VERDICTS: Readonly<Record<StateVerdict, readonly [look: string, text: string]>> = {
  ok: ['is-good', 'OK'],
  stopped: ['is-stopped', 'Stopped'],
  waiting: ['is-waiting', 'Waiting'],
  degraded: ['is-waiting', 'Degraded'],
  broken: ['is-bad', 'Broken'],
};

interface NameProps {
  readonly name: string;
  /** Below the name. */
  readonly below: string;
  readonly title?: string;
}

/** The first cell of a row. */
export const Name = ({ name, below, title }: NameProps) => (
  <>
    <span class="name" title={name}>
      {name}
    </span>
    <span class="networks" title={title}>
      {below}
    </span>
  </>
);

/** A state, with its age if it is old. */
export const Badge = ({ look, title, text }: Readonly<{ look: string; title: string | undefined; text: string }>) => (
  <span class={`badge ${look}`} title={title}>
    {text}
    <OldAge />
  </span>
);

export function VerdictBadge({ verdict, reason }: { readonly verdict: StateVerdict; readonly reason: string }) {
  const [look, text] = VERDICTS[verdict];
  return <Badge look={look} title={reason} text={verdict === 'ok' ? text : `${text}: ${reason}`} />;
}
