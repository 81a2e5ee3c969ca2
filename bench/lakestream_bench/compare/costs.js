// The sums of `money`, over the same cost lines. Tests run both.
function bill(arm, inputs) {
  const by = {};
  let keeping = 0, asking = 0;
  for (const line of arm.lines) {
    const dollars = line.factors.reduce(
      (product, name) => name.startsWith("1/") ? product / inputs[name.slice(2)] : product * inputs[name],
      line.coefficient);
    by[line.source] = (by[line.source] || 0) + dollars;
    if (line.factors.includes("queries_per_day")) asking += dollars; else keeping += dollars;
  }
  return {by, keeping, asking, total: keeping + asking};
}
function leastShards(inputs) {
  const records = inputs.events_per_second, size = records * inputs.event_bytes;
  return Math.max(1, Math.ceil(records / 1000), Math.ceil(size / 2 ** 20));
}
function derived(inputs) {
  const provisioned = inputs.shards > 0;
  return {...inputs,
    on_demand: provisioned ? 0 : 1,
    billed_kibibytes: Math.ceil(inputs.event_bytes / 1024),
    billed_units: provisioned ? Math.ceil(inputs.event_bytes / 25600) : 0,
    billed_shards: provisioned ? Math.ceil(Math.max(inputs.shards, leastShards(inputs))) : 0};
}
function streamModes(lines, inputs) {
  const least = leastShards(inputs);
  const dollars = shards => bill({lines}, derived({...inputs, shards})).total;
  const onDemand = dollars(0), provisioned = dollars(least), aShard = 730 * inputs.kinesis_shard_hour;
  const even = aShard ? Math.max(0, least + (onDemand - provisioned) / aShard) : Infinity;
  return {on_demand: onDemand, least_shards: least, provisioned, even_shards: even};
}
function rivals(cpu, inputs) {
  const gigabytes = inputs.events_per_second * Math.ceil(inputs.event_bytes / 5120) * 5120 * 730 * 3600 / 2 ** 30;
  const busy = (cpu.event * inputs.events_per_second + cpu.batch / inputs.batch_seconds) / inputs.utilization;
  return [gigabytes * inputs.firehose_gb,
    (Math.max(1, Math.ceil(busy)) + 1) * inputs.flink_kpu_hour * 730,
    Math.max(2, Math.ceil(busy / 4)) * inputs.glue_dpu_hour * 730];
}
function breakEven(challenger, holder, inputs) {
  const a_query = {...inputs, queries_per_day: 1}, next = bill(challenger, a_query), old = bill(holder, a_query);
  const dearer = next.keeping - old.keeping, saved = old.asking - next.asking;
  if (saved === 0 || (dearer <= 0) === (saved > 0))
    return dearer < 0 || (dearer === 0 && saved > 0) ? "always" : "never";
  const count = Math.round(dearer / saved).toLocaleString("en-US");
  return `${saved > 0 ? "above" : "below"} ${count} queries a day`;
}
function money(dollars) {
  const digits = dollars < 10 ? 2 : 0;
  return "$" + dollars.toLocaleString("en-US", {minimumFractionDigits: digits, maximumFractionDigits: digits});
}
function show(section) {
  const model = JSON.parse(section.querySelector("script").textContent), given = {...model.inputs};
  for (const field of section.querySelectorAll("input")) given[field.name] = Number(field.value);
  const inputs = derived(given);
  const bills = model.arms.map(arm => bill(arm, inputs)), most = Math.max(...bills.map(one => one.total));
  const terabytes = inputs.events_per_second * inputs.event_bytes * 730 * 3600 / 1e12;
  model.arms.forEach((arm, number) => {
    const one = bills[number], find = name => section.querySelector(`[data-arm="${arm.name}"][data-figure="${name}"]`);
    for (const part of section.querySelectorAll(`.bar[data-arm="${arm.name}"] i`))
      part.style.width = `${100 * (one.by[part.title] || 0) / most}%`;
    find("total").textContent = money(one.total);
    find("keeping").textContent = money(one.keeping);
    find("asking").textContent = money(one.asking);
    find("terabyte").textContent = money(one.keeping / terabytes);
    find("queries").textContent = money(bill(arm, {...inputs, queries_per_day: 1}).asking * 24 / 730 * 1000);
  });
  for (const cell of section.querySelectorAll("[data-challenger]")) {
    const named = name => model.arms.find(arm => arm.name === name);
    cell.textContent = breakEven(named(cell.dataset.challenger), named(cell.dataset.holder), inputs);
  }
  const stream = streamModes(model.stream, given);
  for (const cell of section.querySelectorAll("[data-stream]")) {
    const value = stream[cell.dataset.stream];
    cell.textContent = cell.dataset.stream.endsWith("shards") ? Math.floor(value).toLocaleString("en-US") : money(value);
  }
  section.querySelector("[data-pods]").textContent = money(3 * 730 * inputs.vcpu_hour);
  rivals(model.cpu, inputs).forEach((dollars, number) => {
    section.querySelectorAll("[data-rival]")[number].textContent = money(dollars);
  });
}
