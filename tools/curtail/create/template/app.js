// Asks the service that clients call, and lists the parts of its answer.
const form = document.querySelector("form");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const reply = await fetch("/v1/answers", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text: form.elements.text.value }),
  });
  const answer = await reply.json();
  const parts = reply.ok ? answer.parts : [answer.message];
  document.querySelector("ul").replaceChildren(
    ...parts.map((part) => {
      const item = document.createElement("li");
      item.textContent = part;
      return item;
    }),
  );
});
