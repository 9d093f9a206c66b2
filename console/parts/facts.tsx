export function Facts({ facts }: { readonly facts: readonly (readonly [term: string, value: string])[] }) {
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
